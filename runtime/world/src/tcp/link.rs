//! Connection to one peer, with the queue of frames to write.

use super::answer::is_timeout;
use super::frame::Frame;
use crate::error::LossReason;
use std::io::{BufReader, BufWriter, ErrorKind, Result, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Size of the read and write buffers in bytes.
const BUFFER: usize = 1 << 16;

/// Connection that has completed the rendezvous.
#[derive(Debug)]
pub(super) struct Start {
    /// Rank at the other end.
    pub(super) peer: usize,
    pub(super) stream: TcpStream,
    /// Bytes to write before all frames.
    pub(super) first: Arc<[u8]>,
}

#[derive(Debug)]
pub(super) struct Connection {
    pub(super) peer: usize,
    stream: TcpStream,
    /// Queue of the writer, or `None` after [`close`](Self::close), when the writer must end.
    queue: Mutex<Option<Sender<Frame>>>,
}

/// Owner of a connection, to which its reader and writer report.
pub(super) trait FrameHandler {
    /// Handles a received frame.
    ///
    /// # Errors
    /// Returns the reason for the peer's loss if the frame is invalid.
    fn arrived(&self, peer: usize, frame: Frame) -> std::result::Result<(), LossReason>;

    /// Returns true if a rank is lost, so that no rank takes messages any more.
    fn is_broken(&self) -> bool;

    /// Records that the notice of the lost rank was written to the peer, or cannot be written.
    fn has_told(&self, peer: usize);

    /// Records that the first bytes were written to the peer, or cannot be written.
    fn has_begun(&self, peer: usize);
}

/// Reason for the loss of a rank whose process sends invalid frames.
pub(super) fn nonsense() -> LossReason {
    LossReason::Failed("a message of its process cannot be read".to_owned())
}

impl Connection {
    /// Creates a connection. Returns it with the receiving end of its queue, for the writer.
    ///
    /// # Errors
    /// Returns the errors of configuring the socket.
    pub(super) fn new(start: Start, silence: Duration) -> Result<(Self, Receiver<Frame>)> {
        let Start { peer, stream, first } = start;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(silence))?;
        // The writer may wait for buffer space without limit, because the reader detects a dead
        // peer.
        stream.set_write_timeout(None)?;
        let (queue, frames) = channel();
        let link = Self { peer, stream, queue: Mutex::new(Some(queue)) };
        link.post(Frame::First(first));
        Ok((link, frames))
    }

    /// Queues a frame for the writer.
    pub(super) fn post(&self, frame: Frame) {
        if let Some(queue) = &*self.queue.lock().unwrap_or_else(PoisonError::into_inner) {
            // If the writer has ended, it has also cut the connection, which the reader reports.
            _ = queue.send(frame);
        }
    }

    /// Makes the writer end after its queued frames.
    pub(super) fn close(&self) {
        *self.queue.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Ends all reading and writing.
    pub(super) fn cut(&self) {
        // The connection may already be cut.
        _ = self.stream.shutdown(Shutdown::Both);
    }

    /// Reads until the connection ends or is silent for too long. Returns the reason for the loss
    /// of the peer. The caller ignores this reason if the peer has left.
    pub(super) fn read(&self, around: &impl FrameHandler, silence: Duration) -> LossReason {
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

    /// Writes until the queue or the connection ends.
    pub(super) fn write(
        &self,
        around: &impl FrameHandler,
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

    /// Writes queued frames, and a heartbeat when the queue is empty for some time.
    fn write_all(
        &self,
        around: &impl FrameHandler,
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
                // No rank takes this message any more. The notice of the loss follows in the queue.
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
