//! Job and rank of this process, read from the environment variables of its launcher.

use crate::WorldError;
use std::ffi::OsString;

/// Distance of the rendezvous port from `MASTER_PORT`, which `torchrun` uses for its own store.
const ABOVE_MASTER_PORT: u16 = 1;

/// Maximum number of ranks; more indicate a corrupt variable.
const MAX_RANKS: usize = 1 << 16;

/// Process that is one rank of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Job {
    /// Number of this rank, from 0.
    pub(crate) rank: usize,
    /// Number of ranks in the job.
    pub(crate) ranks: usize,
    /// Number of this rank on its host, if the launcher sets it.
    pub(crate) local_rank: Option<usize>,
    /// Address at which rank 0 listens. Empty for a single rank.
    pub(crate) address: Address,
    /// Identity of the job, as far as the launcher sets it. Rank 0 rejects ranks with another
    /// token.
    pub(crate) token: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Address {
    /// Host name, IPv4 address, or IPv6 address without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// Environment variables of one launcher.
struct Launcher {
    rank: &'static str,
    ranks: &'static [&'static str],
    local_rank: &'static [&'static str],
    /// Variables that identify a job of the launcher. All variables that are set form the token.
    token: &'static [&'static str],
}

/// Launchers, in the order of precedence. `torchrun` and `mpirun` may run within Slurm allocations,
/// so their processes also have Slurm's variables.
///
/// `TORCHELASTIC_RESTART_COUNT` is not part of a token, because agents on different hosts count
/// restarts separately. For ranks that are numbered by hand, Slurm's step is not part of the token,
/// because each host may have its own step.
const LAUNCHERS: [Launcher; 4] = [
    Launcher {
        rank: "RANK",
        ranks: &["WORLD_SIZE"],
        local_rank: &["LOCAL_RANK"],
        token: &["TORCHELASTIC_RUN_ID", "SLURM_JOB_ID"],
    },
    Launcher {
        rank: "OMPI_COMM_WORLD_RANK",
        ranks: &["OMPI_COMM_WORLD_SIZE"],
        local_rank: &["OMPI_COMM_WORLD_LOCAL_RANK"],
        token: &["PMIX_NAMESPACE", "SLURM_JOB_ID"],
    },
    // MPICH and its derivatives, such as Intel MPI.
    Launcher {
        rank: "PMI_RANK",
        ranks: &["PMI_SIZE"],
        local_rank: &["MPI_LOCALRANKID", "PMI_LOCAL_RANK"],
        token: &["SLURM_JOB_ID"],
    },
    SLURM,
];

const SLURM: Launcher = Launcher {
    rank: "SLURM_PROCID",
    ranks: &["SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"],
    local_rank: &["SLURM_LOCALID"],
    token: &["SLURM_JOB_ID", "SLURM_STEP_ID"],
};

/// Variables with values. An empty value counts as unset.
struct Variables<F>(F);

impl<F: Fn(&str) -> Option<OsString>> Variables<F> {
    fn get(&self, name: &str) -> Option<OsString> {
        (self.0)(name).filter(|value| !value.is_empty())
    }

    fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Returns the first variable that is set, with its value as text.
    fn first(&self, names: &[&'static str]) -> Result<Option<(&'static str, String)>, WorldError> {
        let Some((name, value)) = names.iter().find_map(|name| Some((*name, self.get(name)?)))
        else {
            return Ok(None);
        };
        match value.into_string() {
            Ok(value) => Ok(Some((name, value))),
            Err(value) => Err(wrong(name, &value.to_string_lossy(), "it has to be text")),
        }
    }

    /// Returns the first variable that is set, with its value as a number.
    fn number(&self, names: &[&'static str]) -> Result<Option<(&'static str, usize)>, WorldError> {
        let Some((name, value)) = self.first(names)? else {
            return Ok(None);
        };
        // `parse` would also accept a sign.
        let digits = value.bytes().all(|byte| byte.is_ascii_digit());
        match value.parse().ok().filter(|_| digits) {
            Some(number) => Ok(Some((name, number))),
            None => Err(wrong(name, &value, "it has to be a number, as in 3")),
        }
    }

    /// Returns `GEMM_JOB` if it is set, otherwise the launcher's variables joined by `/`.
    fn token(&self, names: &[&'static str]) -> String {
        let names = if self.has("GEMM_JOB") { &["GEMM_JOB"] } else { names };
        let value = |name: &&str| self.get(name).map(|value| value.to_string_lossy().into_owned());
        names.iter().filter_map(value).collect::<Vec<_>>().join("/")
    }

    /// Returns the address of the rendezvous.
    fn address(&self, named: &'static str, rank: usize) -> Result<Address, WorldError> {
        if let Some((name, value)) = self.first(&["GEMM_RENDEZVOUS"])? {
            return parse(&value).ok_or_else(|| {
                wrong(
                    name,
                    &value,
                    "it has to be a host and a port where rank 0 can listen, as in node0:29400",
                )
            });
        }
        let Some((master, host)) = self.first(&["MASTER_ADDR"])? else {
            let need = if named == SLURM.rank {
                "the ranks need a place to meet: export GEMM_RENDEZVOUS=$(scontrol show hostnames \
                 $SLURM_JOB_NODELIST | head -n 1):29400, or MASTER_ADDR and MASTER_PORT, before \
                 srun"
            } else {
                "the ranks need a place to meet: set GEMM_RENDEZVOUS to the host of rank 0 and a \
                 free port of it, as in node0:29400, or MASTER_ADDR and MASTER_PORT"
            };
            return Err(wrong(named, &rank.to_string(), need));
        };
        let Some((name, port)) = self.number(&["MASTER_PORT"])? else {
            return Err(wrong(master, &host, "MASTER_PORT has to be set too"));
        };
        let above = u16::try_from(port).ok().filter(|port| *port > 0);
        match above.and_then(|port| port.checked_add(ABOVE_MASTER_PORT)) {
            Some(port) => Ok(Address { host: bare(&host).to_owned(), port }),
            None => {
                let need = "it has to be a port from 1 to 65534; the ranks meet at the next port";
                Err(wrong(name, &port.to_string(), need))
            }
        }
    }
}

fn wrong(variable: &'static str, value: &str, need: &str) -> WorldError {
    WorldError::Environment { variable, value: value.to_owned(), need: need.to_owned() }
}

/// Strips the brackets of an IPv6 address.
fn bare(host: &str) -> &str {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

/// Parses `host:port`, with brackets around an IPv6 address.
fn parse(text: &str) -> Option<Address> {
    let (host, port) = text.rsplit_once(':')?;
    // Without brackets, the end of an IPv6 address would be ambiguous.
    let brackets = bare(host) != host;
    let port = port.parse().ok().filter(|port| *port > 0)?;
    let host = bare(host);
    let well = !host.is_empty()
        && (brackets || !host.contains(':'))
        && !host.contains(char::is_whitespace);
    well.then(|| Address { host: host.to_owned(), port })
}

impl Job {
    /// Reads the environment of this process. Returns `None` if the process belongs to no job.
    ///
    /// # Errors
    /// Same as [`Job::from`].
    pub(crate) fn from_env() -> Result<Option<Self>, WorldError> {
        Self::from(|name| std::env::var_os(name))
    }

    /// Reads an environment. `RANK`, `WORLD_SIZE` and `LOCAL_RANK` (`torchrun`, or set by hand)
    /// precede the variables of Open MPI, MPICH and Slurm, in this order. The ranks meet at
    /// `GEMM_RENDEZVOUS=host:port`. If it is not set, they meet at `MASTER_ADDR`, one port above
    /// `MASTER_PORT`. A single rank needs no address. `GEMM_JOB` distinguishes jobs. If it is not
    /// set, the launcher's name of the job does.
    ///
    /// # Errors
    /// [`WorldError::Environment`] if a variable is not a valid number or address, or if another
    /// required variable is missing.
    pub(crate) fn from(get: impl Fn(&str) -> Option<OsString>) -> Result<Option<Self>, WorldError> {
        let variables = Variables(get);
        // Batch scripts and interactive shells of Slurm also have its variables, but only processes
        // of a step are ranks.
        let step = !variables.has("SLURM_JOB_ID") || variables.has("SLURM_STEP_ID");
        let says_rank = |launcher: &&Launcher| {
            variables.has(launcher.rank) && (launcher.rank != SLURM.rank || step)
        };
        let Some(launcher) = LAUNCHERS.iter().find(says_rank) else {
            // Slurm sets its number of tasks even in allocations without tasks.
            let others = LAUNCHERS.iter().filter(|launcher| launcher.rank != SLURM.rank);
            for launcher in others {
                if let Some((name, ranks)) = variables.first(launcher.ranks)? {
                    let need =
                        format!("{} has to be set too, to the number of this rank", launcher.rank);
                    return Err(wrong(name, &ranks, &need));
                }
            }
            return Ok(None);
        };
        let Some((_, rank)) = variables.number(&[launcher.rank])? else {
            return Ok(None);
        };
        let Some((name, ranks)) = variables.number(launcher.ranks)? else {
            let last = launcher.ranks.last().copied().unwrap_or_default();
            let need = format!("{last} has to be set too, to the number of ranks");
            return Err(wrong(launcher.rank, &rank.to_string(), &need));
        };
        if !(1..=MAX_RANKS).contains(&ranks) {
            let need = format!("it has to be a number from 1 to {MAX_RANKS}");
            return Err(wrong(name, &ranks.to_string(), &need));
        }
        if rank >= ranks {
            let need = format!("with {name}={ranks} it has to be less than {ranks}");
            return Err(wrong(launcher.rank, &rank.to_string(), &need));
        }
        let local_rank = variables.number(launcher.local_rank)?.map(|(_, local_rank)| local_rank);
        let address = match ranks {
            1 => Address::default(),
            _ => variables.address(launcher.rank, rank)?,
        };
        let token = variables.token(launcher.token);
        Ok(Some(Self { rank, ranks, local_rank, address, token }))
    }
}
