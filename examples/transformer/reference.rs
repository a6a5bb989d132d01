//! The model in f64, and the comparison of gradients with its slopes.

use crate::{DOWN, DOWN_BIAS, Extents, GAIN1, GAIN2, HEAD, OUT, QKV, UP, UP_BIAS};

/// Random parameters and input, the same in each run.
pub struct Data {
    pub x: Vec<f32>,
    pub words: Vec<i32>,
    pub parameters: Vec<Vec<f32>>,
}

/// Numbers of a linear congruential generator, from -1 to 1.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 40) as f32 / (1 << 23) as f32 - 1.0
    }
}

impl Data {
    pub fn draw(of: &Extents) -> Self {
        let mut random = Random(1);
        let x = (0..of.rows() * of.width).map(|_| random.next()).collect();
        let word = |random: &mut Random| (random.next() + 1.0) / 2.0 * of.words as f32;
        let words = (0..of.rows()).map(|_| word(&mut random) as i32).collect();
        let parameters = of.parameters().map(|(name, rows, cols)| {
            let size = (1.0 / cols as f32).sqrt();
            let around = if name.starts_with("gain") { 1.0 } else { 0.0 };
            (0..rows * cols).map(|_| around + size * random.next()).collect()
        });
        Self { x, words, parameters: parameters.into() }
    }

    /// Compares a loss and gradients with f64, and returns the greatest relative error of a
    /// gradient. The slope of the loss along a direction is the product of gradient and direction.
    /// For each parameter, the direction is random.
    pub fn check(&self, of: &Extents, loss: f32, gradients: &[Vec<f32>]) -> Result<f64, String> {
        let parameters: Vec<Vec<f64>> =
            self.parameters.iter().map(|p| p.iter().copied().map(f64::from).collect()).collect();
        let right = self.loss(of, &parameters);
        if (f64::from(loss) - right).abs() > 1e-5 * right {
            return Err(format!("the loss is {loss}, not {right}"));
        }
        let mut random = Random(2);
        let mut worst = 0.0_f64;
        for (nth, gradient) in gradients.iter().enumerate() {
            // Half of the direction is that of the gradient, so that the slope is not near zero.
            let length = gradient.iter().map(|g| f64::from(*g).powi(2)).sum::<f64>().sqrt();
            let share = (gradient.len() as f64).sqrt();
            let direction: Vec<f64> = gradient
                .iter()
                .map(|g| f64::from(*g) / length + f64::from(random.next()) / share)
                .collect();
            let along = |step: f64| {
                let mut moved = parameters.clone();
                moved[nth].iter_mut().zip(&direction).for_each(|(p, d)| *p += step * d);
                self.loss(of, &moved)
            };
            const STEP: f64 = 1e-4;
            let slope = (along(STEP) - along(-STEP)) / (2.0 * STEP);
            let found: f64 = gradient.iter().zip(&direction).map(|(g, d)| f64::from(*g) * d).sum();
            let error = (found - slope).abs() / length;
            worst = worst.max(error);
            if error.is_nan() || error > 1e-4 {
                let (name, ..) = of.parameters()[nth];
                return Err(format!("the gradient of `{name}` has the slope {found}, not {slope}"));
            }
        }
        Ok(worst)
    }

    /// Mean loss in f64.
    fn loss(&self, of: &Extents, p: &[Vec<f64>]) -> f64 {
        let (rows, width, hidden) = (of.rows(), of.width, of.hidden());
        let x: Vec<f64> = self.x.iter().copied().map(f64::from).collect();
        let qkv = linear(&norm(&x, &p[GAIN1]), &p[QKV], width);
        let mut y = linear(&attend(of, &qkv), &p[OUT], width);
        y.iter_mut().zip(&x).for_each(|(y, x)| *y += x);
        let mut t = linear(&norm(&y, &p[GAIN2]), &p[UP], width);
        for row in t.chunks_mut(hidden) {
            row.iter_mut().zip(&p[UP_BIAS]).for_each(|(t, b)| *t = gelu(*t + b));
        }
        let mut z = linear(&t, &p[DOWN], hidden);
        for (z, y) in z.chunks_mut(width).zip(y.chunks(width)) {
            z.iter_mut().zip(&p[DOWN_BIAS]).zip(y).for_each(|((z, b), y)| *z += b + y);
        }
        let logits = linear(&z, &p[HEAD], width);
        let losses = logits.chunks(of.words).zip(&self.words).map(|(row, word)| {
            let top = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            row.iter().map(|x| (x - top).exp()).sum::<f64>().ln() + top - row[*word as usize]
        });
        losses.sum::<f64>() / rows as f64
    }
}

/// Product of the rows of `x`, of `terms` elements each, and the rows of `weight`.
fn linear(x: &[f64], weight: &[f64], terms: usize) -> Vec<f64> {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum();
    x.chunks(terms).flat_map(|row| weight.chunks(terms).map(move |of| dot(row, of))).collect()
}

fn norm(x: &[f64], gain: &[f64]) -> Vec<f64> {
    let rows = x.chunks(gain.len()).flat_map(|row| {
        let scale = (row.iter().map(|x| x * x).sum::<f64>() / gain.len() as f64 + 1e-5).sqrt();
        row.iter().zip(gain).map(move |(x, g)| x / scale * g)
    });
    rows.collect()
}

fn attend(of: &Extents, qkv: &[f64]) -> Vec<f64> {
    let (width, depth, tokens) = (of.width, of.depth(), of.tokens);
    let at = |row: usize, part: usize, head: usize| {
        let first = row * 3 * width + part * width + head * depth;
        &qkv[first..first + depth]
    };
    let mut mixed = vec![0.0; of.rows() * width];
    for (row, out) in mixed.chunks_mut(width).enumerate() {
        let first = row / tokens * tokens;
        for (head, out) in out.chunks_mut(depth).enumerate() {
            let dot = |key| -> f64 {
                at(row, 0, head).iter().zip(at(key, 1, head)).map(|(q, k)| q * k).sum()
            };
            let weights: Vec<f64> =
                (first..=row).map(|key| (dot(key) / (depth as f64).sqrt()).exp()).collect();
            let total: f64 = weights.iter().sum();
            for (key, weight) in (first..).zip(&weights) {
                let value = at(key, 2, head);
                out.iter_mut().zip(value).for_each(|(o, v)| *o += weight / total * v);
            }
        }
    }
    mixed
}

/// x Φ(x). Φ is summed as its series, which converges for all arguments of a model.
fn gelu(x: f64) -> f64 {
    let (mut term, mut sum, mut n) = (x, x, 1.0);
    while term.abs() > 1e-17 * sum.abs() {
        term *= x * x / (2.0 * n + 1.0);
        sum += term;
        n += 1.0;
    }
    x * (0.5 + sum * (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt())
}
