//! A server of a small network. Worker threads, each with a stream of its own, answer the requests
//! of many clients in batches. The kernels are in the binary, so the program needs no NVRTC. An
//! answer has the same bits in every batch, which the program checks.

use gemm_runtime::{
    Archive, Buffer, Device, Error, MN, Map, MatrixMut, MatrixRef, N, SgemmTable, include_archive,
    row_kernel, sgemm_table,
};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

type Result<T> = std::result::Result<T, Error>;

const KERNELS: Archive = include_archive!("kernels");

/// Rules that sum in one order, so that the bits of a row do not depend on the batch.
const LAYER: SgemmTable<(N,)> = sgemm_table! {
    invariant;
    m <= 8 => tile: 8x32x16, thread: 1x2, epilogue: |acc, bias[n]| relu(acc + bias);
    else => tile: 32x32x16, thread: 2x4, float4, epilogue: |acc, bias[n]| relu(acc + bias);
};
const SOFTMAX: Map<(MN,)> = row_kernel!(|x[m, n]| {
    let e = exp(x - max(x));
    e / sum(e)
});

const FEATURES: usize = 32;
const HIDDEN: usize = 64;
const CLASSES: usize = 12;
/// Largest number of requests that one launch answers.
const LARGEST: usize = 32;
const WORKERS: usize = 3;
const CLIENTS: usize = 8;
/// Requests of a client.
const EACH: usize = 25;

/// Weights, which all streams share.
struct Network {
    weights: [Buffer; 2],
    biases: [Buffer; 2],
}

/// Arrays of a worker for a batch of the largest size. A loop that reuses them allocates nothing.
struct Arrays {
    x: Buffer,
    hidden: Buffer,
    logits: Buffer,
    y: Buffer,
}

struct Request {
    features: Vec<f32>,
    reply: Sender<Vec<f32>>,
}

impl Network {
    fn new(device: &Device) -> Result<Self> {
        let upload = |len, seed| device.upload(&numbers(len, seed));
        Ok(Self {
            weights: [upload(FEATURES * HIDDEN, 1)?, upload(HIDDEN * CLASSES, 2)?],
            biases: [upload(HIDDEN, 3)?, upload(CLASSES, 4)?],
        })
    }

    /// Computes the probabilities of the classes for a batch of features.
    fn answer(&self, device: &Device, at: &mut Arrays, batch: &[Request]) -> Result<Vec<f32>> {
        let rows = batch.len();
        let features: Vec<f32> =
            batch.iter().flat_map(|request| &request.features).copied().collect();
        device.write(&mut at.x.slice_mut(..features.len())?, &features)?;
        let [first, second] = &self.weights;
        LAYER.call(device).operands(&self.biases[0]).launch(
            &MatrixRef::new(&at.x, rows, FEATURES)?,
            &MatrixRef::new(first, FEATURES, HIDDEN)?,
            &mut MatrixMut::new(&mut at.hidden, rows, HIDDEN)?,
        )?;
        LAYER.call(device).operands(&self.biases[1]).launch(
            &MatrixRef::new(&at.hidden, rows, HIDDEN)?,
            &MatrixRef::new(second, HIDDEN, CLASSES)?,
            &mut MatrixMut::new(&mut at.logits, rows, CLASSES)?,
        )?;
        let logits = MatrixRef::new(&at.logits, rows, CLASSES)?;
        SOFTMAX.launch(device, &logits, &mut MatrixMut::new(&mut at.y, rows, CLASSES)?)?;
        device.download(&at.y.slice(..rows * CLASSES)?)
    }
}

impl Arrays {
    fn new(device: &Device) -> Result<Self> {
        let [x, hidden, logits, y] =
            [FEATURES, HIDDEN, CLASSES, CLASSES].map(|len| device.alloc(LARGEST * len));
        Ok(Self { x: x?, hidden: hidden?, logits: logits?, y: y? })
    }
}

/// Answers requests until all clients are gone. Returns the number of batches.
fn serve(device: &Device, network: &Network, queue: &Mutex<Receiver<Request>>) -> Result<usize> {
    let mut arrays = Arrays::new(device)?;
    let mut batches = 0;
    loop {
        let batch: Vec<Request> = {
            let queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
            // Waits for one request, then takes those that are there already.
            queue.recv().into_iter().chain(queue.try_iter()).take(LARGEST).collect()
        };
        if batch.is_empty() {
            return Ok(batches);
        }
        let answers = network.answer(device, &mut arrays, &batch)?;
        for (request, answer) in batch.iter().zip(answers.chunks(CLASSES)) {
            // A client that is gone needs no answer.
            let _ = request.reply.send(answer.to_vec());
        }
        batches += 1;
    }
}

/// Sends requests, each after the answer to the one before. Returns them with their answers.
fn ask(client: usize, queue: &Sender<Request>) -> Vec<(Vec<f32>, Vec<f32>)> {
    let seeds = (0..EACH).map(|nth| 100 + client * EACH + nth);
    seeds
        .map_while(|seed| {
            let (reply, answer) = mpsc::channel();
            let features = numbers(FEATURES, seed as u32);
            // Both fail if the workers have stopped.
            queue.send(Request { features: features.clone(), reply }).ok()?;
            Some((features, answer.recv().ok()?))
        })
        .collect()
}

/// Pseudorandom numbers from -0.5 to 0.5.
fn numbers(len: usize, seed: u32) -> Vec<f32> {
    let hash = |nth: usize| (nth as u32 + 1).wrapping_mul(2654435761).wrapping_mul(2 * seed + 1);
    (0..len).map(|nth| (hash(nth) >> 8) as f32 / (1 << 24) as f32 - 0.5).collect()
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let device = Device::auto()?; // first CUDA GPU, else the simulator
    device.add_archive(KERNELS)?;
    LAYER.warm(&device, [(1, HIDDEN, FEATURES), (LARGEST, HIDDEN, FEATURES)])?;
    let network = Network::new(&device)?;
    let streams = (0..WORKERS).map(|_| device.on_new_stream()).collect::<Result<Vec<_>>>()?;

    let (sender, receiver) = mpsc::channel();
    // The workers own the queue: without workers, clients stop instead of waiting.
    let queue = Arc::new(Mutex::new(receiver));
    let start = Instant::now();
    let (answered, batches) = thread::scope(|scope| {
        let mut workers = Vec::new();
        for stream in &streams {
            let (queue, network) = (queue.clone(), &network);
            workers.push(scope.spawn(move || serve(stream, network, &queue)));
        }
        drop(queue);
        let mut clients = Vec::new();
        for client in 0..CLIENTS {
            let sender = sender.clone();
            clients.push(scope.spawn(move || ask(client, &sender)));
        }
        drop(sender);
        let answered: Vec<_> =
            clients.into_iter().flat_map(|all| all.join().expect("no panic")).collect();
        let batches = workers.into_iter().map(|worker| worker.join().expect("no panic"));
        (answered, batches.sum::<Result<usize>>())
    });
    let time = start.elapsed();
    let batches = batches?;
    println!("{} requests in {batches} batches on {}: {time:.2?}", answered.len(), device.name());

    let mut arrays = Arrays::new(&device)?;
    for (features, answer) in &answered {
        let (reply, _) = mpsc::channel();
        let alone = Request { features: features.clone(), reply };
        if network.answer(&device, &mut arrays, &[alone])? != *answer {
            return Err("an answer depends on its batch".into());
        }
    }
    if answered.len() < CLIENTS * EACH {
        return Err(format!("only {} requests were answered", answered.len()).into());
    }
    println!("each answer has the bits of its request alone");
    Ok(())
}
