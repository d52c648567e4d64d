//! Random graphs over several streams, of operations whose results are exact, so that they
//! can be compared with the CPU's to the bit. Operands are dropped, evaluated and read on
//! the way, in an order that the seed decides.

use ultramarine::{Array, Result, Stream, async_eval, with_stream};
use ultramarine_test_support::Rng;

/// The values of a random graph, built the same whatever the streams are.
pub fn random_graph(seed: u64, streams: &[Stream]) -> Result<Vec<f32>> {
    let mut random = Rng::new(seed);
    let mut pool: Vec<Array> = (0..4)
        .map(|i| {
            let data: Vec<f32> = (0..12).map(|k| ((k * 7 + i * 5) % 11) as f32).collect();
            Array::from_slice(&data, &[3, 4])
        })
        .collect::<Result<_>>()?;
    for _ in 0..60 {
        let a = pool[random.below(pool.len())].clone();
        let b = pool[random.below(pool.len())].clone();
        let (op, s) = (random.below(4), random.below(streams.len()));
        let made = with_stream(streams[s], || match op {
            0 => a.subtract(&b),
            1 => a.maximum(&b),
            2 => a.transpose_axes([1, 0])?.reshape(&[3, 4])?.subtract(&b),
            _ => a.maximum(&b)?.subtract(&a)?.maximum(&a),
        })?;
        match random.below(6) {
            0 => async_eval(std::slice::from_ref(&made))?,
            1 => made.eval()?,
            _ => {}
        }
        if pool.len() > 8 || random.below(4) == 0 {
            let victim = random.below(pool.len());
            pool.swap_remove(victim);
        }
        pool.push(made);
    }
    async_eval(&pool)?;
    let mut out = Vec::new();
    for a in &pool {
        out.extend(a.to_vec::<f32>()?);
    }
    Ok(out)
}

/// `each` graphs by each of eight threads at once, over the same streams, of which the last is the
/// CPU's: all are what that makes of them alone.
pub fn by_eight_threads(streams: &[Stream], each: u64) {
    let cpu = vec![streams[streams.len() - 1]; streams.len()];
    std::thread::scope(|scope| {
        for t in 0..8u64 {
            let cpu = &cpu;
            scope.spawn(move || {
                for seed in t * 100..t * 100 + each {
                    let found = random_graph(seed, streams).unwrap();
                    assert_eq!(found, random_graph(seed, cpu).unwrap(), "seed {seed}");
                }
            });
        }
    });
}
