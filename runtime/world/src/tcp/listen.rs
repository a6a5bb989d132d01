use super::job::Address;
use crate::WorldError;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, ToSocketAddrs};
use std::thread;
use std::time::{Duration, Instant};

/// Interval of attempts while the port is in use.
const AGAIN: Duration = Duration::from_millis(100);

/// Listens at the rendezvous address.
///
/// If the address is `localhost` or an IP address of this host, rank 0 listens only at this
/// address. For any other host name, or for an address of a device in front of this host, it
/// listens on all interfaces. The reason is that a host's own name often resolves to an address
/// that other hosts cannot reach.
///
/// # Errors
/// [`WorldError::Rendezvous`] if the port is not available by the deadline.
pub(super) fn listen(address: &Address, deadline: Instant) -> Result<TcpListener, WorldError> {
    loop {
        let error = match bind(address) {
            Ok(listener) => return Ok(listener),
            Err(error) => error,
        };
        let taken = error.kind() == ErrorKind::AddrInUse;
        if taken && Instant::now() < deadline {
            thread::sleep(AGAIN);
            continue;
        }
        let reason = if taken {
            "another process listens on this port; set GEMM_RENDEZVOUS to a port that is free on \
             the host of rank 0"
                .to_owned()
        } else {
            format!("rank 0 cannot listen: {error}")
        };
        return Err(WorldError::Rendezvous { address: address.to_string(), reason });
    }
}

fn bind(address: &Address) -> std::io::Result<TcpListener> {
    let port = address.port;
    let everywhere = || {
        let all = [IpAddr::V6(Ipv6Addr::UNSPECIFIED), IpAddr::V4(Ipv4Addr::UNSPECIFIED)];
        match TcpListener::bind((all[0], port)) {
            // This host has no IPv6.
            Err(error) if error.kind() != ErrorKind::AddrInUse => TcpListener::bind((all[1], port)),
            bound => bound,
        }
    };
    if address.host == "localhost" {
        let places: Vec<SocketAddr> = (address.host.as_str(), port).to_socket_addrs()?.collect();
        return TcpListener::bind(places.as_slice());
    }
    let Ok(ip) = address.host.parse::<IpAddr>() else {
        return everywhere();
    };
    match TcpListener::bind((ip, port)) {
        Err(error) if error.kind() == ErrorKind::AddrNotAvailable => everywhere(),
        bound => bound,
    }
}
