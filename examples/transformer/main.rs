//! One training step of a transformer: a block with causal attention and an MLP, then the logits of
//! a vocabulary. Computes the loss and all gradients, compares them with f64, and updates the
//! parameters.
//!
//! `cargo run --release --example transformer -- 4 128 256 4 512`: sequences, tokens of a sequence,
//! width, heads, and words of the vocabulary.

mod reference;

use gemm_runtime::{Buffer, BufferView, Device, Epilogue, InPlace, M, MN, Map, Matrix, MatrixMut};
use gemm_runtime::{MatrixRef, N, Out, ReduceKernel};
use gemm_runtime::{epilogue, map_kernel, reduce_kernel, row_kernel, sgemm};
use std::error::Error;
use std::time::Instant;

type Result<T, E = gemm_runtime::Error> = std::result::Result<T, E>;

/// Extents of the model and of its input.
#[derive(Clone, Copy)]
pub struct Extents {
    /// Sequences of the batch.
    pub batch: usize,
    /// Tokens of a sequence.
    pub tokens: usize,
    /// Elements of a token between the layers.
    pub width: usize,
    pub heads: usize,
    /// Words of the vocabulary.
    pub words: usize,
}

impl Extents {
    /// Tokens of all sequences.
    pub fn rows(&self) -> usize {
        self.batch * self.tokens
    }

    /// Elements of a token in one head.
    pub fn depth(&self) -> usize {
        self.width / self.heads
    }

    /// Elements of a token inside the MLP.
    pub fn hidden(&self) -> usize {
        4 * self.width
    }

    /// Name, rows and columns of each parameter. Weights are stored as in PyTorch: a row for each
    /// output.
    pub fn parameters(&self) -> [(&'static str, usize, usize); 9] {
        let (width, hidden) = (self.width, self.hidden());
        [
            ("gain1", 1, width),
            ("qkv", 3 * width, width),
            ("out", width, width),
            ("gain2", 1, width),
            ("up", hidden, width),
            ("up_bias", 1, hidden),
            ("down", width, hidden),
            ("down_bias", 1, width),
            ("head", self.words, width),
        ]
    }
}

// Places of the parameters.
pub const GAIN1: usize = 0;
pub const QKV: usize = 1;
pub const OUT: usize = 2;
pub const GAIN2: usize = 3;
pub const UP: usize = 4;
pub const UP_BIAS: usize = 5;
pub const DOWN: usize = 6;
pub const DOWN_BIAS: usize = 7;
pub const HEAD: usize = 8;

const NORM: Map<(MN, N)> =
    row_kernel!(|x[m, n], gain[n]| x * rsqrt(sum(x * x) / f32(n) + 1e-5) * gain);
/// Gradient of [`NORM`] in x, added to `rest`, and the elements whose column sums are the gradient
/// in `gain`.
const NORM_BACKWARD: Map<(MN, MN, MN, N), (MN, MN)> = row_kernel! {
    |x[m, n], dy[m, n], rest[m, n], gain[n]| {
        let scale = rsqrt(sum(x * x) / f32(n) + 1e-5);
        let unit = x * scale;
        let d = dy * gain;
        (rest + scale * (d - unit * (sum(d * unit) / f32(n))), dy * unit)
    }
};
/// Softmax of scores `[batch, heads, tokens, tokens]`: a row per query, which sees the keys up to
/// its own token.
const ATTEND: Map<(MN,)> = row_kernel!(|scores[m, n]| {
    let seen = if col > row % max(n, 1) { -1.0 / 0.0 } else { scores };
    let e = exp(seen - max(seen));
    e / sum(e)
});
const ATTEND_BACKWARD: Map<(MN, MN, f32)> =
    row_kernel!(|p[m, n], dp[m, n], scale| p * (dp - sum(p * dp)) * scale);
/// Loss of each row, and the gradient of the mean loss.
const CROSS_ENTROPY: Map<(MN, M<i32>), (M, MN)> = row_kernel! {
    |x[m, n], word[m]: i32| -> (f32[m], f32) {
        let top = max(x);
        let e = exp(x - top);
        let total = sum(e);
        let hit = if col == word { 1.0 } else { 0.0 };
        (log(total) + top - sum(hit * x), (e / total - hit) / f32(m))
    }
};
const REST: Epilogue<(MN,)> = epilogue!(|acc, rest[m, n]| acc + rest);
/// Activation of the MLP, and its argument for the backward pass.
const ACTIVATE: Epilogue<(N, Out)> = epilogue!(|acc, bias[n]| { let t = acc + bias; (gelu(t), t) });
const ACTIVATE_BACKWARD: Epilogue<(MN,)> = epilogue!(|acc, t[m, n]| {
    acc * (0.5 * erfc(-0.70710678 * t) + 0.3989423 * t * exp(-0.5 * t * t))
});
const BIAS_AND_REST: Epilogue<(N, MN)> = epilogue!(|acc, bias[n], rest[m, n]| acc + bias + rest);
const COLUMN_SUMS: ReduceKernel = reduce_kernel!(op: sum, over: columns);
const TOTAL: ReduceKernel = reduce_kernel!(op: sum);
const DESCEND: Map<(MN, MN, f32)> = map_kernel!(|w[m, n], dw[m, n], rate| w - rate * dw);

/// Parameters on the device, in the order of [`Extents::parameters`].
struct Model {
    device: Device,
    extents: Extents,
    parameters: Vec<Buffer>,
}

/// Results of the forward pass that the backward pass reads.
struct Activations {
    h1: Matrix,
    qkv: Matrix,
    /// Weights of the attention, `[batch, heads, tokens, tokens]`.
    attention: Buffer,
    mixed: Buffer,
    y: Matrix,
    h2: Matrix,
    /// Argument of the activation, and its result.
    before: Matrix,
    active: Matrix,
    z: Matrix,
    /// Gradient of the mean loss in the logits.
    dlogits: Matrix,
    loss: f32,
}

impl Model {
    fn new(device: &Device, extents: Extents, parameters: &[Vec<f32>]) -> Result<Self> {
        let parameters =
            parameters.iter().map(|values| device.upload(values)).collect::<Result<_>>()?;
        Ok(Self { device: device.clone(), extents, parameters })
    }

    /// Parameter as a matrix.
    fn weight(&self, nth: usize) -> Result<MatrixRef<'_>> {
        let (_, rows, cols) = self.extents.parameters()[nth];
        MatrixRef::new(&self.parameters[nth], rows, cols)
    }

    /// Allocates a matrix with a row for each token.
    fn matrix(&self, cols: usize) -> Result<Matrix> {
        self.device.alloc_matrix(self.extents.rows(), cols)
    }

    /// Batch axes of the heads in a matrix of tokens: sequences, then heads. `pitch` is the number
    /// of elements of a row.
    fn axes(&self, pitch: usize) -> [(usize, usize); 2] {
        let Extents { batch, tokens, heads, .. } = self.extents;
        [(batch, tokens * pitch), (heads, self.extents.depth())]
    }

    /// First columns of q, k and v in their common matrix.
    fn firsts(&self) -> [usize; 3] {
        [0, 1, 2].map(|nth| nth * self.extents.width)
    }

    /// Columns of q, k and v.
    fn parts<'a>(&self, qkv: &'a Matrix) -> Result<[BufferView<'a>; 3]> {
        let [q, k, v] = self.firsts().map(|first| qkv.buffer().slice(first..));
        Ok([q?, k?, v?])
    }

    /// Heads of a part of the columns of a matrix of tokens.
    fn heads<'a>(&self, part: &'a BufferView<'_>, pitch: usize) -> Result<MatrixRef<'a>> {
        let (tokens, depth) = (self.extents.tokens, self.extents.depth());
        MatrixRef::batch_axes(part, self.axes(pitch), tokens, depth, pitch)
    }

    /// Views of an array `[batch, heads, tokens, tokens]`: a batch of matrices, or the rows of all.
    fn maps<'a>(&self, maps: &'a Buffer) -> Result<[MatrixRef<'a>; 2]> {
        let Extents { batch, tokens, heads, .. } = self.extents;
        let all = batch * heads;
        Ok([
            MatrixRef::batch(maps, all, tokens, tokens)?,
            MatrixRef::new(maps, all * tokens, tokens)?,
        ])
    }

    fn maps_mut<'a>(&self, maps: &'a mut Buffer) -> Result<MatrixMut<'a>> {
        let Extents { batch, tokens, heads, .. } = self.extents;
        MatrixMut::batch(maps, batch * heads, tokens, tokens)
    }

    fn alloc_maps(&self) -> Result<Buffer> {
        let Extents { batch, tokens, heads, .. } = self.extents;
        self.device.alloc(batch * heads * tokens * tokens)
    }

    /// Factor of the scores.
    fn scale(&self) -> f32 {
        (self.extents.depth() as f32).sqrt().recip()
    }

    /// Computes the weights of the attention, and the values that they mix.
    fn attend(&self, qkv: &Matrix) -> Result<(Buffer, Buffer)> {
        let (device, width) = (&self.device, self.extents.width);
        let parts = self.parts(qkv)?;
        let [q, k, v] = parts.each_ref().map(|part| self.heads(part, 3 * width));
        let mut scores = self.alloc_maps()?;
        sgemm(&q?, &k?.t(), &mut self.maps_mut(&mut scores)?).alpha(self.scale()).run(device)?;
        let mut weights = self.alloc_maps()?;
        let [_, score_rows] = self.maps(&scores)?;
        let mut weight_rows = MatrixMut::new(&mut weights, score_rows.rows(), self.extents.tokens)?;
        ATTEND.launch(device, &score_rows, &mut weight_rows)?;

        let mut mixed = device.alloc(self.extents.rows() * width)?;
        let (tokens, depth) = (self.extents.tokens, self.extents.depth());
        let mut heads = MatrixMut::batch_axes(&mut mixed, self.axes(width), tokens, depth, width)?;
        let [weight_maps, _] = self.maps(&weights)?;
        sgemm(&weight_maps, &v?, &mut heads).run(device)?;
        Ok((weights, mixed))
    }

    /// Computes the mean loss, and what the backward pass needs.
    fn forward(&self, x: &MatrixRef<'_>, words: &Buffer<i32>) -> Result<Activations> {
        let (device, p, of) = (&self.device, &self.parameters, self.extents);
        let (width, hidden) = (of.width, of.hidden());
        let mut h1 = self.matrix(width)?;
        NORM.launch(device, (x, &p[GAIN1]), &mut h1)?;
        let mut qkv = self.matrix(3 * width)?;
        sgemm(&h1, &self.weight(QKV)?.t(), &mut qkv).run(device)?;
        let (attention, mixed) = self.attend(&qkv)?;
        let mut y = self.matrix(width)?;
        sgemm(&MatrixRef::new(&mixed, of.rows(), width)?, &self.weight(OUT)?.t(), &mut y)
            .epilogue(REST)
            .operands(x)
            .run(device)?;

        let mut h2 = self.matrix(width)?;
        NORM.launch(device, (&y, &p[GAIN2]), &mut h2)?;
        let (mut active, mut before) = (self.matrix(hidden)?, self.matrix(hidden)?);
        sgemm(&h2, &self.weight(UP)?.t(), &mut active)
            .epilogue(ACTIVATE)
            .operands((&p[UP_BIAS], &mut before))
            .run(device)?;
        let mut z = self.matrix(width)?;
        sgemm(&active, &self.weight(DOWN)?.t(), &mut z)
            .epilogue(BIAS_AND_REST)
            .operands((&p[DOWN_BIAS], &y))
            .run(device)?;

        let (mut logits, mut dlogits) = (self.matrix(of.words)?, self.matrix(of.words)?);
        sgemm(&z, &self.weight(HEAD)?.t(), &mut logits).run(device)?;
        let (mut losses, mut total) = (device.alloc(of.rows())?, device.alloc(1)?);
        CROSS_ENTROPY.launch(device, (&logits, words), (&mut losses, &mut dlogits))?;
        TOTAL.launch(device, &losses, &mut total)?;
        let loss = device.download(&total)?[0] / of.rows() as f32;
        Ok(Activations { h1, qkv, attention, mixed, y, h2, before, active, z, dlogits, loss })
    }

    /// Computes the gradient of each parameter.
    fn backward(&self, x: &MatrixRef<'_>, of: &Activations) -> Result<Vec<Buffer>> {
        let (device, p, width) = (&self.device, &self.parameters, self.extents.width);
        let shapes = self.extents.parameters();
        let gradients = shapes.map(|(_, rows, cols)| device.alloc(rows * cols));
        let mut gradients = gradients.into_iter().collect::<Result<Vec<_>>>()?;
        // The gradient of a weight is the transposed gradient of its output times its input.
        let of_weight = |dw: &mut Buffer, dy: &MatrixRef<'_>, input: &MatrixRef<'_>| {
            let mut dw = MatrixMut::new(dw, dy.cols(), input.cols())?;
            sgemm(&dy.t(), input, &mut dw).run(device)
        };
        of_weight(&mut gradients[HEAD], &of.dlogits.view(), &of.z.view())?;
        let mut dz = self.matrix(width)?;
        sgemm(&of.dlogits, &self.weight(HEAD)?, &mut dz).run(device)?;

        of_weight(&mut gradients[DOWN], &dz.view(), &of.active.view())?;
        COLUMN_SUMS.launch(device, &dz, &mut gradients[DOWN_BIAS])?;
        let mut dbefore = self.matrix(self.extents.hidden())?;
        sgemm(&dz, &self.weight(DOWN)?, &mut dbefore)
            .epilogue(ACTIVATE_BACKWARD)
            .operands(&of.before)
            .run(device)?;
        of_weight(&mut gradients[UP], &dbefore.view(), &of.h2.view())?;
        COLUMN_SUMS.launch(device, &dbefore, &mut gradients[UP_BIAS])?;
        let (mut dh, mut dgain) = (self.matrix(width)?, self.matrix(width)?);
        sgemm(&dbefore, &self.weight(UP)?, &mut dh).run(device)?;
        let mut dy = self.matrix(width)?;
        NORM_BACKWARD.launch(device, (&of.y, &dh, &dz, &p[GAIN2]), (&mut dy, &mut dgain))?;
        COLUMN_SUMS.launch(device, &dgain, &mut gradients[GAIN2])?;

        let mixed = MatrixRef::new(&of.mixed, self.extents.rows(), width)?;
        of_weight(&mut gradients[OUT], &dy.view(), &mixed)?;
        let mut dmixed = self.matrix(width)?;
        sgemm(&dy, &self.weight(OUT)?, &mut dmixed).run(device)?;
        let dqkv = self.attend_backward(of, &dmixed)?;
        let dqkv = MatrixRef::new(&dqkv, self.extents.rows(), 3 * width)?;
        of_weight(&mut gradients[QKV], &dqkv, &of.h1.view())?;
        sgemm(&dqkv, &self.weight(QKV)?, &mut dh).run(device)?;
        let mut dx = self.matrix(width)?;
        NORM_BACKWARD.launch(device, (x, &dh, &dy, &p[GAIN1]), (&mut dx, &mut dgain))?;
        COLUMN_SUMS.launch(device, &dgain, &mut gradients[GAIN1])?;
        Ok(gradients)
    }

    /// Computes the gradients of q, k and v, as columns of one matrix.
    fn attend_backward(&self, of: &Activations, dmixed: &Matrix) -> Result<Buffer> {
        let (device, width) = (&self.device, self.extents.width);
        let (tokens, depth) = (self.extents.tokens, self.extents.depth());
        let parts = self.parts(&of.qkv)?;
        let [q, k, v] = parts.each_ref().map(|part| self.heads(part, 3 * width));
        let dmixed = dmixed.buffer().whole();
        let dmixed = self.heads(&dmixed, width)?;
        let [attention, attention_rows] = self.maps(&of.attention)?;

        let (mut dweights, mut dscores) = (self.alloc_maps()?, self.alloc_maps()?);
        sgemm(&dmixed, &v?.t(), &mut self.maps_mut(&mut dweights)?).run(device)?;
        let [_, dweight_rows] = self.maps(&dweights)?;
        let mut dscore_rows = MatrixMut::new(&mut dscores, dweight_rows.rows(), tokens)?;
        let operands = (&attention_rows, &dweight_rows, self.scale());
        ATTEND_BACKWARD.launch(device, operands, &mut dscore_rows)?;

        let [dscores, _] = self.maps(&dscores)?;
        let mut dqkv = device.alloc(self.extents.rows() * 3 * width)?;
        let products = [(dscores, k?), (dscores.t(), q?), (attention.t(), dmixed)];
        for (first, (a, b)) in self.firsts().into_iter().zip(products) {
            let mut part = dqkv.slice_mut(first..)?;
            let axes = self.axes(3 * width);
            let mut heads = MatrixMut::batch_axes(&mut part, axes, tokens, depth, 3 * width)?;
            sgemm(&a, &b, &mut heads).run(device)?;
        }
        Ok(dqkv)
    }

    /// Subtracts `rate` times its gradient from each parameter.
    fn descend(&mut self, gradients: &[Buffer], rate: f32) -> Result<()> {
        for (parameter, gradient) in self.parameters.iter_mut().zip(gradients) {
            DESCEND.launch(&self.device, (InPlace::first(), gradient, rate), parameter)?;
        }
        Ok(())
    }
}

/// Extents from the command line.
fn extents() -> Result<Extents, Box<dyn Error>> {
    let numbers: Result<Vec<usize>, _> =
        std::env::args().skip(1).map(|word| word.parse()).collect();
    let [batch, tokens, width, heads, words] = match numbers?[..] {
        [] => [2, 12, 16, 4, 20],
        [batch, tokens, width, heads, words] => [batch, tokens, width, heads, words],
        _ => return Err("pass sequences, tokens, width, heads and words, or nothing".into()),
    };
    if [batch, tokens, width, heads, words].contains(&0) || width % heads != 0 {
        return Err(format!("{width} elements cannot be divided among {heads} heads").into());
    }
    Ok(Extents { batch, tokens, width, heads, words })
}

fn main() -> Result<(), Box<dyn Error>> {
    let device = Device::auto()?; // first CUDA GPU, else the simulator
    let extents = extents()?;
    let data = reference::Data::draw(&extents);
    let x = device.upload(&data.x)?;
    let x = MatrixRef::new(&x, extents.rows(), extents.width)?;
    let words = device.upload_of(&data.words)?;
    let mut model = Model::new(&device, extents, &data.parameters)?;

    let found = model.forward(&x, &words)?;
    let gradients = model.backward(&x, &found)?;
    let downloaded = gradients.iter().map(|gradient| device.download(gradient));
    let worst = data.check(&extents, found.loss, &downloaded.collect::<Result<Vec<_>>>()?)?;
    println!(
        "loss {:.6} on {}, relative error of gradients {worst:.1e}",
        found.loss,
        device.name()
    );

    model.descend(&gradients, 0.1)?;
    let after = model.forward(&x, &words)?.loss;
    println!("loss {after:.6} after one step");
    if after >= found.loss {
        return Err("the step did not lower the loss".into());
    }
    if !device.is_simulator() {
        const STEPS: u32 = 20;
        device.synchronize()?;
        let start = Instant::now();
        for _ in 0..STEPS {
            let found = model.forward(&x, &words)?;
            let gradients = model.backward(&x, &found)?;
            model.descend(&gradients, 0.1)?;
        }
        device.synchronize()?;
        println!("{:.2?} for a step of {} tokens", start.elapsed() / STEPS, extents.rows());
    }
    Ok(())
}
