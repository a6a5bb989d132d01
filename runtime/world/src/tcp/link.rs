//! One connection: what is to be written on it, and how it is written and read.

use super::answer::is_timeout;
use super::frame::Frame;
use crate::error::LossReason;
use std::io::{BufReader, BufWriter, ErrorKind, Result, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What is collected before it is written or taken apart, in bytes.
const BUFFER: usize = 1 << 16;

/// A connection to begin with.
#[derive(Debug)]
pub(super) struct Start {
    /// The rank at its other end.
    pub(super) peer: usize,
    pub(super) stream: TcpStream,
    /// What is said first on it.
    pub(super) first: Arc<[u8]>,
}

/// A connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) peer: usize,
    stream: TcpStream,
    /// What its writer is to write; none when that is to end.
    queue: Mutex<Option<Sender<Frame>>>,
}

/// What a reader or a writer asks of where it belongs, and tells it.
pub(super) trait Around {
    /// Something has come.
    ///
    /// # Errors
    /// What the other end is lost with where it says what it cannot say.
    fn arrived(&self, peer: usize, frame: Frame) -> std::result::Result<(), LossReason>;

    /// Whether nobody takes messages any more.
    fn is_broken(&self) -> bool;

    /// The other end has been told which rank was lost, as far as it can be.
    fn has_told(&self, peer: usize);

    /// What is said first has been said, as far as it can be.
    fn has_begun(&self, peer: usize);
}

/// What a rank is lost with whose process says what it cannot say.
pub(super) fn nonsense() -> LossReason {
    LossReason::Failed("what came from its process cannot be read".to_owned())
}

impl Connection {
    /// A connection, and what its writer is to be given.
    ///
    /// # Errors
    /// Those of the connection.
    pub(super) fn new(start: Start, silence: Duration) -> Result<(Self, Receiver<Frame>)> {
        let Start { peer, stream, first } = start;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(silence))?;
        // A reader finds out that nobody is there; a writer only waits until there is room.
        stream.set_write_timeout(None)?;
        let (queue, frames) = channel();
        let link = Self { peer, stream, queue: Mutex::new(Some(queue)) };
        link.post(Frame::First(first));
        Ok((link, frames))
    }

    /// Queues what is to be written.
    pub(super) fn post(&self, frame: Frame) {
        if let Some(queue) = &*self.queue.lock().unwrap_or_else(PoisonError::into_inner) {
            // A writer that has ended has cut the connection, which the reader tells of.
            _ = queue.send(frame);
        }
    }

    /// The writer ends when it has written what is queued.
    pub(super) fn close(&self) {
        *self.queue.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Nothing is read or written any more.
    pub(super) fn cut(&self) {
        // One that is cut already is what it is to be.
        _ = self.stream.shutdown(Shutdown::Both);
    }

    /// Reads until the connection ends, or nothing has come for so long: what its other end is lost with, if it has not
    /// left.
    pub(super) fn read(&self, around: &impl Around, silence: Duration) -> LossReason {
        let mut from = BufReader::with_capacity(BUFFER, &self.stream);
        loop {
            match Frame::read(&mut from) {
                Ok(Some(frame)) => {
                    if let Err(why) = around.arrived(self.peer, frame) {
                        return why;
                    }
                }
                Err(error) if is_timeout(&error) => return LossReason::Late(silence),
                Err(error) if error.kind() == ErrorKind::InvalidData => return nonsense(),
                Ok(None) | Err(_) => return LossReason::Gone,
            }
        }
    }

    /// Writes until the queue ends, or the connection does.
    pub(super) fn write(
        &self,
        around: &impl Around,
        frames: &Receiver<Frame>,
        heartbeat: Duration,
    ) {
        let wrote = self.write_all(around, frames, heartbeat);
        if wrote.and_then(|()| self.stream.shutdown(Shutdown::Write)).is_err() {
            self.cut();
        }
        around.has_begun(self.peer);
        around.has_told(self.peer);
    }

    /// Writes what is queued, and a sign of life where nothing is for some time.
    fn write_all(
        &self,
        around: &impl Around,
        frames: &Receiver<Frame>,
        heartbeat: Duration,
    ) -> Result<()> {
        let mut to = BufWriter::with_capacity(BUFFER, &self.stream);
        loop {
            let frame = match frames.try_recv() {
                Ok(frame) => frame,
                Err(TryRecvError::Disconnected) => return to.flush(),
                Err(TryRecvError::Empty) => {
                    to.flush()?;
                    match frames.recv_timeout(heartbeat) {
                        Ok(frame) => frame,
                        Err(RecvTimeoutError::Timeout) => Frame::Alive,
                        Err(RecvTimeoutError::Disconnected) => return to.flush(),
                    }
                }
            };
            match frame {
                // Nobody takes it any more, and what all are to be told comes behind it.
                Frame::Message { .. } if around.is_broken() => {}
                Frame::LossReason(_) => {
                    frame.write(&mut to)?;
                    to.flush()?;
                    around.has_told(self.peer);
                }
                Frame::First(_) => {
                    frame.write(&mut to)?;
                    to.flush()?;
                    around.has_begun(self.peer);
                }
                _ => frame.write(&mut to)?,
            }
        }
    }
}
