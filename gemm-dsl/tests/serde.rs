//! Specs, expressions and tables are serialised as their text.

use gemm_dsl::spec::{Epilogue, MapSpec, ReduceSpec, SgemmSpec};
use gemm_dsl::stages;
use gemm_dsl::tables::KernelTable;
use gemm_dsl::tables::shipped::tuned;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::{Debug, Display};

/// The value is written as the string of its text, and read back.
fn round_trip<T: Serialize + DeserializeOwned + PartialEq + Debug + Display>(value: &T) {
    let json = serde_json::to_string(value).expect("a string");
    assert_eq!(serde_json::from_str::<String>(&json).expect("a string"), value.to_string());
    assert_eq!(serde_json::from_str::<T>(&json).expect("the same value"), *value);
}

#[test]
fn texts_are_read_back() -> Result<(), Box<dyn std::error::Error>> {
    stages::sgemm().iter().for_each(|stage| round_trip(&stage.spec));
    stages::reduce().iter().for_each(|stage| round_trip(&stage.spec));
    round_trip(&"|x[m, n], bias[n]| -> bf16 gelu(x + bias), block: 128".parse::<MapSpec>()?);
    round_trip(&"|acc, bias[n]| relu(acc + bias)".parse::<Epilogue>()?);
    round_trip(&tuned(&ReduceSpec::default())?);
    let table = "invariant; m <= 8 && nt => tile: 8x8x8; else => tile: 16x16x8, thread: 2x2";
    round_trip(&table.parse::<KernelTable<SgemmSpec>>()?);
    Ok(())
}

#[test]
fn faults_are_those_of_the_text() {
    fn error<T: DeserializeOwned + Debug>(json: &str) -> String {
        serde_json::from_str::<T>(json).expect_err(json).to_string()
    }
    fn fault<T: std::str::FromStr<Err: Display> + Debug>(text: &str) -> String {
        match text.parse::<T>() {
            Ok(value) => panic!("{value:?}"),
            Err(faults) => faults.to_string(),
        }
    }
    let (spec, table) = ("tile: 8x8, fragmnt: split", "m <= 8 => tile: 8x8x8");
    assert!(error::<SgemmSpec>(&format!("{spec:?}")).starts_with(&fault::<SgemmSpec>(spec)));
    let (told, faults) = (
        error::<KernelTable<SgemmSpec>>(&format!("{table:?}")),
        fault::<KernelTable<SgemmSpec>>(table),
    );
    assert!(told.starts_with(&faults), "{told}");
    assert!(error::<MapSpec>("\"|x[m, n]| foo(x)\"").contains("foo"));
    assert!(error::<ReduceSpec>("7").contains("expected a string"));
    assert!(error::<Epilogue>("\"|acc| foo(acc)\"").contains("foo"));
}
