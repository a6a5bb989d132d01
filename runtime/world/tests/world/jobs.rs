//! Worlds whose ranks are processes: this test starts itself once for each rank.

use gemm_runtime::{Device, ReduceKernel, SgemmKernel, reduce_kernel, sgemm_kernel};
use gemm_world::{Distribution, OnRank, World};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

const GEMM: SgemmKernel = sgemm_kernel!(tile: 16x16x8, thread: 4x4, pitched);
const SUM: ReduceKernel = reduce_kernel!(op: sum, block: 32, run: 64);
const SIZE: (usize, usize, usize) = (33, 40, 21);

/// Environment variable that marks the processes of ranks.
const IS_RANK: &str = "GEMM_TEST_IS_RANK";

fn values(len: usize) -> Vec<f32> {
    (0..len).map(|i| ((i * 37 + 11) % 101) as f32 / 64.0 - 0.75).collect()
}

/// Program of a rank's process. Does nothing in the test program itself.
#[test]
fn as_a_rank() {
    let Ok(role) = std::env::var(IS_RANK) else { return };
    if role == "alone" {
        return alone();
    }
    let world = World::of_job(|_| Ok(Device::simulator()));
    let world = match world {
        Ok(world) => world.expect("the environment says that it is one"),
        Err(error) => return println!("REFUSED {error}"),
    };
    let (m, n, k) = SIZE;
    let outcome = world.run(|rank| {
        let a = rank.upload(&Distribution::rows(m, k), &values(m * k))?;
        let b = rank.upload(&Distribution::cols(k, n), &values(k * n))?;
        let mut c = rank.alloc(&Distribution::grid(m, n, [1, rank.ranks()]))?;
        GEMM.on(rank).launch(&a, &b, &mut c)?;
        if role == "dies" {
            std::process::abort();
        }
        let x = rank
            .upload(&"1x1000 cols/64".parse::<Distribution>().expect("a layout"), &values(1000))?;
        let sum = SUM.on(rank).run(&x)?;
        Ok((rank.gather(&c, 0)?, sum))
    });
    match outcome {
        Ok(results) => {
            let (product, sum) = &results[0];
            println!("SUM {:08x}", sum.to_bits());
            if let Some(product) = product {
                let bits: Vec<String> =
                    product.iter().map(|x| format!("{:08x}", x.to_bits())).collect();
                println!("PRODUCT {}", bits.join(""));
            }
        }
        Err(error) => println!("FAILED {error}"),
    }
}

/// Worlds created by a process outside a job.
fn alone() {
    let said = |world: gemm_world::Result<World>| match world {
        Ok(world) => format!("{} ranks", world.ranks()),
        Err(error) => error.to_string(),
    };
    println!("FROM_ENV {}", said(World::from_env()));
    println!("OF {}", said(World::new(vec![Device::simulator(), Device::simulator()])));
    println!("SIMULATED {}", said(World::simulated(2)));
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

fn start(rank: usize, ranks: usize, port: u16, role: &str) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("this test"));
    command
        .args(["--exact", "jobs::as_a_rank", "--nocapture", "--test-threads=1"])
        .env(IS_RANK, role)
        .env("RANK", rank.to_string())
        .env("WORLD_SIZE", ranks.to_string())
        .env("LOCAL_RANK", rank.to_string())
        .env("GEMM_RENDEZVOUS", format!("127.0.0.1:{port}"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command.spawn().expect("a process")
}

/// Output of each process.
fn said(children: Vec<Child>) -> Vec<String> {
    let output = children.into_iter().map(|child| child.wait_with_output().expect("its output"));
    output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).collect()
}

fn line<'s>(said: &'s str, what: &str) -> Option<&'s str> {
    let at = said.find(what)?;
    said[at + what.len()..].lines().next().map(str::trim)
}

#[test]
fn four_processes_have_the_bits_of_one_device() {
    let port = free_port();
    let said = said((0..4).map(|rank| start(rank, 4, port, "works")).collect());
    let (m, n, k) = SIZE;
    let device = Device::simulator();
    let product = GEMM.run(&device, &values(m * k), &values(k * n), SIZE).expect("one device");
    let bits: Vec<String> = product.iter().map(|x| format!("{:08x}", x.to_bits())).collect();
    assert_eq!(line(&said[0], "PRODUCT "), Some(bits.join("").as_str()), "{}", said[0]);
    let sum = SUM.run(&device, &values(1000)).expect("one device");
    for said in &said {
        assert_eq!(line(said, "SUM "), Some(format!("{:08x}", sum.to_bits()).as_str()), "{said}");
    }
}

#[test]
fn a_process_that_dies_is_lost_to_all_others() {
    let port = free_port();
    let roles = ["works", "works", "dies"];
    let children = roles.iter().enumerate().map(|(rank, role)| start(rank, 3, port, role));
    let said = said(children.collect());
    for said in &said[..2] {
        let failed = line(said, "FAILED ").unwrap_or_else(|| panic!("{said}"));
        assert!(failed.starts_with("rank 2 was lost"), "{failed}");
    }
}

#[test]
fn the_transport_follows_the_environment_or_fails() {
    let said = |carry: &str| {
        let mut command = Command::new(std::env::current_exe().expect("this test"));
        command.args(["--exact", "jobs::as_a_rank", "--nocapture", "--test-threads=1"]);
        // Hides all GPUs.
        command.env(IS_RANK, "alone").env("GEMM_CARRY", carry).env("CUDA_VISIBLE_DEVICES", "");
        let output =
            command.stdin(Stdio::null()).stderr(Stdio::null()).output().expect("a process");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    for carry in ["", "host"] {
        let said = said(carry);
        for (what, ranks) in
            [("FROM_ENV ", "1 ranks"), ("OF ", "2 ranks"), ("SIMULATED ", "2 ranks")]
        {
            assert_eq!(line(&said, what), Some(ranks), "{said}");
        }
    }
    for (carry, told) in [
        ("nccl", "`nccl` for simulated devices cannot be used: their data goes through the host"),
        ("peers", "`peers` for simulated devices cannot be used: their data goes through the host"),
        ("Host", "the environment has GEMM_CARRY=Host: it has to be `peers`, `nccl` or `host`"),
    ] {
        let said = said(carry);
        assert_eq!(line(&said, "FROM_ENV "), Some(told), "{said}");
        assert_eq!(line(&said, "OF "), Some(told), "{said}");
        assert_eq!(line(&said, "SIMULATED "), Some("2 ranks"), "{said}");
    }
}
