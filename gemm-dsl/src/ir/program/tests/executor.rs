//! Executor with a back end that only records the requests.

use super::*;
use crate::ir::HostError;
use crate::ir::contract::{ArrayPlace, BoundArray, Contract, ContractError, Region};

#[derive(Clone, Debug, PartialEq)]
enum Request {
    Prepare(KernelId),
    Temporary(&'static str, u64),
    Launch { kernel: KernelId, arrays: Vec<&'static str>, is_main: bool },
}

/// Back end that fails at one request.
#[derive(Default)]
struct Recorder {
    requests: Vec<Request>,
    fails_at: Option<Request>,
    /// True if the device cannot run optional kernels.
    is_old: bool,
    cache: Option<CallCache>,
}

impl Recorder {
    fn record(&mut self, request: Request) -> Result<(), Failure> {
        let fails = self.fails_at.as_ref() == Some(&request);
        self.requests.push(request);
        if fails { Err(Failure) } else { Ok(()) }
    }
}

#[derive(Debug, PartialEq)]
struct Failure;

macro_rules! failures {
    ($($error:ty),*) => {
        $(impl From<$error> for Failure {
            fn from(_: $error) -> Self {
                Self
            }
        })*
    };
}
failures!(BindError, HostError, ContractError);

impl ProgramBackend for Recorder {
    type Array = &'static str;
    type Report = ();
    type Error = Failure;

    fn describe<'a>(&self, name: &'a &'static str) -> BoundArray<'a> {
        let place = ArrayPlace::One(Region { address: 0, len: 9 });
        BoundArray { name, elem: Elem::F32, place, axes: None }
    }

    fn call_cache(&self) -> Option<&CallCache> {
        self.cache.as_ref()
    }

    fn runs(&self, contract: &Contract) -> bool {
        !(self.is_old && contract.is_optional)
    }

    fn prepare(&mut self, kernel: KernelId) -> Result<(), Failure> {
        self.record(Request::Prepare(kernel))
    }

    fn temporary(&mut self, temporary: &Temporary<'_>) -> Result<&'static str, Failure> {
        self.record(Request::Temporary(temporary.temp.name, temporary.layout.len))?;
        Ok(temporary.temp.name)
    }

    fn launch(&mut self, launch: &KernelLaunch<'_, &'static str>) -> Result<(), Failure> {
        let array = |argument: &KernelArgument<'_, &'static str>| match argument {
            KernelArgument::Array(name) => Some(**name),
            KernelArgument::Scalar(..) | KernelArgument::TensorMap { .. } => None,
        };
        let arrays = launch.arguments.iter().filter_map(array).collect();
        let (kernel, is_main) = (launch.kernel, launch.is_main);
        self.record(Request::Launch { kernel, arrays, is_main })
    }
}

fn execute(backend: &mut Recorder) -> Result<Execution<()>, Failure> {
    let mut parts = parts();
    parts.program.steps = parts.whole();
    let program = VerifiedProgram::new(parts.program).expect("sound");
    let arrays = [(Operand::Input(0), "x"), (Operand::Output(0), "y")];
    let arrays = program.bind_arrays(&arrays).expect("both arrays");
    program.execute(&bound(&program, 9), &arrays, backend)
}

#[test]
fn kernels_are_prepared_before_temporaries_are_made() {
    let mut backend = Recorder::default();
    let execution = execute(&mut backend).expect("a run");
    let launch = |kernel, arrays: [&'static str; 2]| Request::Launch {
        kernel,
        arrays: arrays.to_vec(),
        is_main: kernel == COPY,
    };
    assert_eq!(
        backend.requests,
        [
            Request::Prepare(SET),
            Request::Prepare(ADD),
            Request::Prepare(COPY),
            Request::Temporary("t", 9),
            launch(SET, ["x", "t"]),
            launch(ADD, ["x", "t"]),
            launch(COPY, ["t", "y"]),
        ]
    );
    assert_eq!(execution.main, COPY);
    let launches = execution.launches.iter().map(|launch| (launch.kernel, launch.is_main));
    assert_eq!(launches.collect::<Vec<_>>(), [(SET, false), (ADD, false), (COPY, true)]);
}

#[test]
fn a_run_ends_at_the_first_failure() {
    for (fails_at, requests) in [
        (Request::Prepare(ADD), 2),
        (Request::Temporary("t", 9), 4),
        (Request::Launch { kernel: ADD, arrays: vec!["x", "t"], is_main: false }, 6),
    ] {
        let mut backend = Recorder { fails_at: Some(fails_at), ..Recorder::default() };
        assert!(execute(&mut backend).is_err());
        assert_eq!(backend.requests.len(), requests, "{:?}", backend.requests);
    }
}

#[test]
fn a_run_with_cached_calls_makes_the_same_requests() {
    let mut first = Recorder { cache: Some(CallCache::default()), ..Recorder::default() };
    execute(&mut first).expect("a run");
    let mut again = Recorder { cache: first.cache.take(), ..Recorder::default() };
    execute(&mut again).expect("a run");
    assert_eq!(again.requests, first.requests);
}

/// A device that cannot run an optional kernel takes the next one.
#[test]
fn optional_kernels_are_skipped() {
    let mut parts = parts();
    let mut optional = kernel("optional", Body::Copy);
    optional.optional();
    let optional = parts.program.kernel(optional.finish().expect("a sound kernel"));
    let mut steps = parts.whole();
    let Some(Step::Launch(last)) = steps.last_mut() else { panic!("a launch") };
    last.choose.to_mut().insert(0, optional);
    parts.program.steps = steps;
    let program = VerifiedProgram::new(parts.program).expect("sound");
    let arrays = [(Operand::Input(0), "x"), (Operand::Output(0), "y")];
    let arrays = program.bind_arrays(&arrays).expect("both arrays");
    for (is_old, expected) in [(false, optional), (true, COPY)] {
        let mut backend = Recorder { is_old, ..Recorder::default() };
        let run = program.execute(&bound(&program, 9), &arrays, &mut backend).expect("a run");
        assert_eq!(run.launches.last().map(|launch| launch.kernel), Some(expected));
    }
}

#[test]
fn the_last_kernel_of_a_launch_is_not_optional() {
    let mut optional = kernel("optional", Body::Set);
    optional.optional();
    let optional = optional.finish().expect("a sound kernel");
    let program = changed(|p| {
        let optional = p.kernel(optional);
        first(p).choose.to_mut().push(optional);
    });
    says(&program, "the last kernel of a launch is optional");
}
