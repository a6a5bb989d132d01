//! Kernels, tables and epilogues are serialised as their text.

use gemm_runtime::generic::Kernel;
use gemm_runtime::spec::MapSpec;
use gemm_runtime::{
    ByName, Device, Epilogue, MN, Map, N, ReduceKernel, ReduceSpec, ReduceTable, Sgemm, SgemmTable,
    epilogue, map_kernel, reduce_kernel, reduce_table, sgemm_kernel, sgemm_table,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::error::Error;

const LAYER: Sgemm<(N,)> =
    sgemm_kernel!(tile: 16x16x8, thread: 4x4, epilogue: |acc, bias[n]| relu(acc + bias));
const SUM: ReduceKernel = reduce_kernel!(op: sum, block: 64);
const ADD: Map<(MN, N)> = map_kernel!(|x[m, n], bias[n]| x + bias, block: 128);
const GEMMS: SgemmTable = sgemm_table! { m <= 8 => tile: 8x8x8; else => tile: 16x16x8 };
const SUMS: ReduceTable = reduce_table! { len <= 64 => over: rows, group: 4; else => over: rows };
const BIAS: Epilogue<(N,)> = epilogue!(|acc, bias[n]| acc + bias);

/// Serialises a value of a macro and reads it back. Returns its text.
fn read_back<T: Serialize + DeserializeOwned>(value: &T) -> Result<(String, T), Box<dyn Error>> {
    let json = serde_json::to_string(value)?;
    Ok((serde_json::from_str(&json)?, serde_json::from_str(&json)?))
}

#[test]
fn values_of_macros_are_read_back() -> Result<(), Box<dyn Error>> {
    let (text, layer) = read_back(&LAYER)?;
    assert_eq!((text.as_str(), layer), (LAYER.spec_line(), LAYER));
    let (text, sum) = read_back(&SUM)?;
    assert_eq!((text.as_str(), &sum), (SUM.spec_line(), &SUM));
    assert_eq!(sum.run(&Device::simulator(), &[1.0, 2.0])?, 3.0);
    let (text, add) = read_back(&ADD)?;
    assert_eq!((text.as_str(), &add), (ADD.spec_line(), &ADD));
    let by_name: Kernel<MapSpec, ByName> = serde_json::from_str(&format!("{text:?}"))?;
    assert_eq!(by_name.spec_line(), ADD.spec_line());
    let (text, gemms) = read_back(&GEMMS)?;
    assert_eq!((text.as_str(), gemms.text()), (GEMMS.text(), GEMMS.text()));
    let (text, sums) = read_back(&SUMS)?;
    assert_eq!((text.as_str(), sums.text()), (SUMS.text(), SUMS.text()));
    let (text, bias) = read_back(&BIAS)?;
    assert_eq!((text.as_str(), bias), (BIAS.text(), BIAS));
    let by_name: Kernel<ReduceSpec, ByName> = serde_json::from_str("\"map: |x, y| x * y\"")?;
    assert_eq!(by_name.spec_line(), "map: |x, y| x * y");
    Ok(())
}

#[test]
fn a_text_of_another_type_is_an_error() {
    fn error<T: DeserializeOwned>(text: &str) -> String {
        serde_json::from_str::<T>(&format!("{text:?}")).map(drop).expect_err(text).to_string()
    }
    let layer = error::<Sgemm>(LAYER.spec_line());
    assert!(layer.contains("its type is `Sgemm<(N,)>`"), "{layer}");
    let dot = error::<ReduceKernel>("map: |x, y| x * y");
    assert!(dot.contains("`ReduceKernel<(f32, f32), f32>`"), "{dot}");
    assert!(error::<Epilogue>(BIAS.text()).contains("Epilogue<(N,)>"));
    assert!(error::<SgemmTable<(N,)>>(GEMMS.text()).contains("Sgemm"));
    assert!(error::<ReduceTable<f32, u32>>(SUMS.text()).contains("ReduceKernel"));
    let add = error::<Map<(MN, MN)>>(ADD.spec_line());
    assert!(add.contains("its type is `Map<(MN, N)>`"), "{add}");
    assert!(error::<ReduceKernel>("op: summ").contains("`sum`"));
}
