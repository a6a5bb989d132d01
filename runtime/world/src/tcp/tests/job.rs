//! Environments of launchers: complete, incomplete and corrupt.

use crate::WorldError;
use crate::tcp::{Address, Job};
use std::collections::HashMap;
use std::ffi::OsString;

type Environment = HashMap<&'static str, String>;

fn job(environment: &Environment) -> Result<Option<Job>, WorldError> {
    Job::from(|name| environment.get(name).map(OsString::from))
}

/// Returns the error's variable, value and requirement.
fn wrong(environment: &Environment) -> (&'static str, String, String) {
    match job(environment) {
        Err(WorldError::Environment { variable, value, need }) => (variable, value, need),
        other => panic!("{environment:?}: {other:?}"),
    }
}

/// Variables for rank, number of ranks and local rank.
const LAUNCHERS: [[&str; 3]; 4] = [
    ["RANK", "WORLD_SIZE", "LOCAL_RANK"],
    ["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"],
    ["PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"],
    ["SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"],
];

fn whole(launcher: usize, rank: usize, ranks: usize) -> Environment {
    let [name, size, local] = LAUNCHERS[launcher];
    Environment::from([
        (name, rank.to_string()),
        (size, ranks.to_string()),
        (local, (rank % 2).to_string()),
        ("MASTER_ADDR", "node0".to_owned()),
        ("MASTER_PORT", "29500".to_owned()),
    ])
}

fn node0(port: u16) -> Address {
    Address { host: "node0".to_owned(), port }
}

#[test]
fn nothing_set_is_no_job() {
    assert_eq!(job(&Environment::new()), Ok(None));
    // Shells of `salloc` and scripts of `sbatch` have rank 0's variables, but are not a job step.
    let mut slurm =
        Environment::from([("SLURM_JOB_ID", "7".to_owned()), ("SLURM_NTASKS", "4".to_owned())]);
    assert_eq!(job(&slurm), Ok(None));
    slurm.insert("SLURM_PROCID", "0".to_owned());
    assert_eq!(job(&slurm), Ok(None));
    slurm.insert("SLURM_STEP_ID", "0".to_owned());
    slurm.insert("GEMM_RENDEZVOUS", "node0:1".to_owned());
    assert_eq!(
        job(&slurm).map(|job| job.map(|job| (job.rank, job.token))),
        Ok(Some((0, "7/0".to_owned())))
    );
    // Empty values count as unset.
    assert_eq!(
        job(&Environment::from([("RANK", String::new()), ("WORLD_SIZE", String::new())])),
        Ok(None)
    );
}

#[test]
fn every_launcher_sets_the_rank() {
    for launcher in 0..LAUNCHERS.len() {
        for (rank, ranks) in [(0, 2), (3, 4), (511, 512)] {
            let job =
                job(&whole(launcher, rank, ranks)).expect("a valid environment").expect("a job");
            assert_eq!((job.rank, job.ranks, job.local_rank), (rank, ranks, Some(rank % 2)));
            assert_eq!(job.address, node0(29501), "torchrun has the port itself");
        }
    }
}

#[test]
fn the_innermost_launcher_counts() {
    for (inner, [rank, ..]) in LAUNCHERS.into_iter().enumerate() {
        for outer in inner + 1..LAUNCHERS.len() {
            let mut both = whole(outer, 1, 3);
            both.extend(whole(inner, 2, 5));
            assert_eq!(
                job(&both).map(|job| job.map(|job| (job.rank, job.ranks))),
                Ok(Some((2, 5)))
            );
            // A number of ranks without a rank does not count, since scripts may export it for
            // other programs.
            both.remove(rank);
            assert_eq!(
                job(&both).map(|job| job.map(|job| (job.rank, job.ranks))),
                Ok(Some((1, 3)))
            );
        }
    }
}

#[test]
fn one_rank_needs_no_rendezvous_and_a_local_rank_may_be_missing() {
    let one = Environment::from([("RANK", "0".to_owned()), ("WORLD_SIZE", "1".to_owned())]);
    let one = job(&one).expect("a valid environment").expect("a job");
    assert_eq!((one.rank, one.ranks, one.local_rank), (0, 1, None));
}

#[test]
fn incomplete_and_invalid_variables_are_named() {
    for (launcher, [rank, size, local]) in LAUNCHERS.into_iter().enumerate() {
        let without = |name| {
            let mut environment = whole(launcher, 1, 2);
            environment.remove(name);
            environment
        };
        let with = |name, value: &str| {
            let mut environment = whole(launcher, 1, 2);
            environment.insert(name, value.to_owned());
            environment
        };
        if rank == "SLURM_PROCID" {
            assert_eq!(job(&without(rank)), Ok(None), "an allocation's shell");
        } else {
            let (variable, value, need) = wrong(&without(rank));
            assert_eq!((variable, value.as_str()), (size, "2"));
            assert!(need.contains(rank), "{need}");
        }
        let (variable, value, need) = wrong(&without(size));
        assert_eq!((variable, value.as_str()), (rank, "1"));
        assert!(need.contains(size), "{need}");
        for garbage in ["-1", "+1", "1.0", "one", " 1", "0x1", "99999999999999999999999"] {
            for name in [rank, size, local, "MASTER_PORT"] {
                let (variable, value, _) = wrong(&with(name, garbage));
                assert_eq!((variable, value.as_str()), (name, garbage));
            }
        }
        assert_eq!(wrong(&with(rank, "2")).0, rank, "no rank 2 of 2");
        assert_eq!(wrong(&with(size, "0")).0, size);
        assert_eq!(wrong(&with(size, "4000000000")).0, size, "too many ranks");
        for port in ["0", "65535", "65536"] {
            assert_eq!(wrong(&with("MASTER_PORT", port)).0, "MASTER_PORT");
        }
        let (variable, _, need) = wrong(&without("MASTER_ADDR"));
        assert_eq!(variable, rank);
        assert!(need.contains("GEMM_RENDEZVOUS") && need.contains("MASTER_ADDR"), "{need}");
        assert_eq!(need.contains("scontrol"), rank == "SLURM_PROCID");
        let (variable, value, need) = wrong(&without("MASTER_PORT"));
        assert_eq!((variable, value.as_str()), ("MASTER_ADDR", "node0"));
        assert!(need.contains("MASTER_PORT"), "{need}");
    }
}

#[test]
fn an_explicit_rendezvous_wins() {
    let at = |place: &str| {
        let mut environment = whole(0, 1, 2);
        environment.insert("GEMM_RENDEZVOUS", place.to_owned());
        environment
    };
    for (place, host, port) in [
        ("node0:1", "node0", 1),
        ("10.0.0.7:65535", "10.0.0.7", 65535),
        ("[fe80::1]:29400", "fe80::1", 29400),
    ] {
        let job = job(&at(place)).expect("a valid environment").expect("a job");
        assert_eq!(job.address, Address { host: host.to_owned(), port });
        assert_eq!(job.address.to_string(), place, "as it was written");
    }
    for garbage in [
        "node0",
        "node0:",
        ":29400",
        "node0:0",
        "node0:65536",
        "node0:x",
        "fe80::1:29400",
        "a b:1",
        "[]:1",
    ] {
        let (variable, value, _) = wrong(&at(garbage));
        assert_eq!((variable, value.as_str()), ("GEMM_RENDEZVOUS", garbage));
    }
}

#[test]
fn the_token_identifies_the_job() {
    let token = |more: &[(&'static str, &str)], launcher| {
        let mut environment = whole(launcher, 0, 2);
        environment.extend(more.iter().map(|(name, value)| (*name, (*value).to_owned())));
        job(&environment).expect("a valid environment").expect("a job").token
    };
    assert_eq!(token(&[], 0), "");
    assert_eq!(
        token(&[("TORCHELASTIC_RUN_ID", "none"), ("SLURM_JOB_ID", "7"), ("SLURM_STEP_ID", "3")], 0),
        "none/7"
    );
    assert_eq!(token(&[("PMIX_NAMESPACE", "prterun-1")], 1), "prterun-1");
    assert_eq!(token(&[("SLURM_JOB_ID", "7"), ("SLURM_STEP_ID", "3")], 3), "7/3");
    for launcher in 0..LAUNCHERS.len() {
        assert_eq!(
            token(&[("GEMM_JOB", "mine"), ("SLURM_JOB_ID", "7"), ("SLURM_STEP_ID", "3")], launcher),
            "mine"
        );
    }
}

#[cfg(unix)]
#[test]
fn variables_that_are_not_utf_8_are_named() {
    use std::os::unix::ffi::OsStringExt;
    let job = Job::from(|name| (name == "RANK").then(|| OsString::from_vec(vec![0xff])));
    assert!(matches!(job, Err(WorldError::Environment { variable: "RANK", .. })), "{job:?}");
}
