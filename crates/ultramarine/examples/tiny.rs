use std::time::Instant;
use ultramarine::*;
fn best(name: &str, n: usize, mut f: impl FnMut()) {
    let mut b = f64::MAX;
    for _ in 0..n {
        let t = Instant::now();
        f();
        b = b.min(t.elapsed().as_secs_f64());
    }
    println!("{name}: {:.3} ms", b * 1e3);
}
fn main() -> Result<()> {
    let y = Array::from_slice(&[1.0f32; 4], &[4])?;
    for fused in [true, false] {
        set_fusion(fused);
        best(&format!("1000 tiny fused={fused}"), 200, || {
            let mut x = y.clone();
            for i in 0..1000 {
                x = if i % 2 == 0 { x.add(&y) } else { x.multiply(&y) }.unwrap();
            }
            x.eval().unwrap();
        });
    }
    best("build only", 200, || {
        let mut x = y.clone();
        for i in 0..1000 {
            x = if i % 2 == 0 { x.add(&y) } else { x.multiply(&y) }.unwrap();
        }
        std::hint::black_box(&x);
    });
    set_fusion(true);
    let a = Array::from_slice(&vec![1.0f32; 4096 * 4096], &[4096, 4096])?;
    let b = Array::from_slice(&vec![2.0f32; 4096 * 4096], &[4096, 4096])?;
    best("4x+2y", 20, || {
        (&a * 4.0).unwrap().add(&(&b * 2.0).unwrap()).unwrap().eval().unwrap();
    });
    best("4x", 20, || {
        (&a * 4.0).unwrap().eval().unwrap();
    });
    best("x+y", 20, || {
        a.add(&b).unwrap().eval().unwrap();
    });
    best("x+x", 20, || {
        a.add(&a).unwrap().eval().unwrap();
    });
    set_fusion(false);
    best("x+y unfused", 20, || {
        a.add(&b).unwrap().eval().unwrap();
    });
    best("4x+2y unfused", 20, || {
        (&a * 4.0).unwrap().add(&(&b * 2.0).unwrap()).unwrap().eval().unwrap();
    });
    set_fusion(true);
    best("exp", 20, || {
        a.exp().unwrap().eval().unwrap();
    });
    println!("{:?}", stats());
    Ok(())
}
