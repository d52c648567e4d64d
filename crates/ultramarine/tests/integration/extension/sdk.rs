//! Primitives of the library that is linked into the program: its arrays are this core's, and what panics is an error.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use ultramarine::extension::{
    self as ext, CpuCall, Error, Place, Primitive, Result, TensorType, Vjp, apply, apply_one,
    call_one, from_library, library_place,
};
use ultramarine::transforms::{compile, grad, jvp, vjp, vmap};
use ultramarine::{Array, Dtype};

/// alpha x + beta y.
#[derive(Debug)]
struct Axpby(f32, f32);

impl Primitive for Axpby {
    fn name(&self) -> &str {
        "axpby"
    }

    fn eval_cpu(&self, call: &mut CpuCall<'_>) -> Result<()> {
        let (alpha, beta) = (self.0, self.1);
        call.map2(|x: f32, y: f32| alpha * x + beta * y)
    }

    fn compose(&self, inputs: &[ext::Array]) -> Result<Vec<ext::Array>> {
        Ok(vec![((&inputs[0] * self.0)? + &inputs[1] * self.1)?])
    }
}

fn axpby(x: &Array, y: &Array) -> ultramarine::Result<Array> {
    call_one(Axpby(2.0, -3.0), &[x, y])
}

fn values(a: &Array) -> Vec<f32> {
    a.to_vec::<f32>().unwrap()
}

fn xy() -> (Array, Array) {
    let x = Array::from_slice(&[1.0f32, 2.0, 3.0, 4.0], &[2, 2]).unwrap();
    (x.clone(), x.transpose().unwrap())
}

#[test]
fn a_primitive_in_a_program() {
    let (x, y) = xy();
    let z = axpby(&x, &y).unwrap();
    assert_eq!(values(&z), [-1.0, -5.0, 0.0, -4.0]);
    let d = grad(|x: &Array| axpby(x, &y)?.square()?.sum(None))(&x).unwrap();
    let want = (&z * 4.0).unwrap();
    assert_eq!(values(&d), values(&want));
    let f = |a: &[Array]| Ok::<_, ultramarine::Error>(vec![axpby(&a[0], &a[1])?]);
    let t = jvp(f, &[x.clone(), y.clone()], &[x.clone(), y.clone()]).unwrap().1;
    assert_eq!(values(&t[0]), values(&z));
    for axes in [[Some(0), Some(0)], [Some(1), Some(1)], [Some(1), Some(0)]] {
        let b = vmap(f, &[x.clone(), y.clone()], axes, 0).unwrap();
        let part = |a: &Array, axis: Option<isize>| a.moveaxis(axis.unwrap(), 0).unwrap();
        let want = axpby(&part(&x, axes[0]), &part(&y, axes[1])).unwrap();
        assert_eq!(values(&b[0]), values(&want), "{axes:?}");
    }
}

/// By default, operands are broadcast and promoted, and fields tell one operation from another.
#[test]
fn defaults_of_types_and_identity() {
    let (x, y) = xy();
    let wide = axpby(&x, &Array::ones(&[3, 1, 2], Dtype::Float64).unwrap()).unwrap();
    assert_eq!((wide.shape(), wide.dtype()), (&[3, 2, 2][..], Dtype::Float64));
    let same = axpby(&x.astype(Dtype::Float16), &y.astype(Dtype::Float16)).unwrap();
    assert_eq!(same.dtype(), Dtype::Float16);
    let nothing: &[&Array] = &[];
    let error = call_one(Axpby(1.0, 1.0), nothing).unwrap_err().to_string();
    assert!(error.contains("[axpby]") && error.contains("Write `infer`"), "{error}");

    let two = |a: &[Array]| {
        Ok(vec![
            call_one(Axpby(1.0, 0.0), &[&a[0], &a[1]])?,
            call_one(Axpby(2.0, 0.0), &[&a[0], &a[1]])?,
        ])
    };
    let results = compile(two).call(&[&x, &y]).unwrap();
    assert_eq!(values(&results[0]), values(&x));
    assert_eq!(values(&results[1]), values(&(&x * 2.0).unwrap()));
}

/// Panics where it is told to.
#[derive(Debug)]
struct Panics {
    at: &'static str,
    dropped: Arc<AtomicUsize>,
}

impl Drop for Panics {
    fn drop(&mut self) {
        self.dropped.fetch_add(1, Ordering::SeqCst);
    }
}

impl Panics {
    fn come(&self, at: &str) {
        if self.at == at {
            panic!("told to in {at}");
        }
    }
}

impl Primitive for Panics {
    fn name(&self) -> &str {
        "panics"
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>> {
        self.come("infer");
        Ok(vec![inputs[0].clone()])
    }

    fn eval_cpu(&self, call: &mut CpuCall<'_>) -> Result<()> {
        self.come("eval_cpu");
        if self.at == "compose" {
            return Err(Error::unsupported("by compose, please."));
        }
        if self.at == "task" {
            call.enqueue(|| panic!("told to in task"))?;
        }
        call.map1(|x: f32| x)
    }

    fn compose(&self, inputs: &[ext::Array]) -> Result<Vec<ext::Array>> {
        self.come("compose");
        Ok(vec![inputs[0].clone()])
    }

    fn vjp(&self, of: &Vjp<'_>) -> Result<Vec<Option<ext::Array>>> {
        self.come("vjp");
        Ok(vec![of.cotangents[0].clone()])
    }

    fn jvp(&self, of: &ext::Jvp<'_>) -> Result<Vec<Option<ext::Array>>> {
        self.come("jvp");
        Ok(vec![of.tangents[0].clone()])
    }

    fn vmap(&self, of: &ext::Vmap<'_>) -> Result<Vec<(ext::Array, Option<usize>)>> {
        self.come("vmap");
        Ok(vec![(of.inputs[0].clone(), of.axes[0])])
    }
}

#[test]
fn panics_are_errors_that_name_the_primitive() {
    let (x, _) = xy();
    for at in ["infer", "eval_cpu", "compose", "task", "vjp", "jvp", "vmap"] {
        let dropped = Arc::<AtomicUsize>::default();
        let f = |a: &[Array]| -> ultramarine::Result<Vec<Array>> {
            let primitive = Panics { at, dropped: dropped.clone() };
            let y = apply_one(primitive, &[&(&a[0]).into()], Place::Default);
            Ok(vec![y.map_err(from_library)?.into()])
        };
        let one = std::slice::from_ref(&x);
        let outcome = match at {
            "vjp" => vjp(f, one, one).map(drop),
            "jvp" => jvp(f, one, one).map(drop),
            "vmap" => vmap(f, one, [Some(0)], 0).map(drop),
            _ => f(one).and_then(|y| y[0].eval()),
        };
        let error = outcome.unwrap_err().to_string();
        assert!(error.starts_with("[panics] "), "{at}: {error}");
        assert!(error.contains(&format!("told to in {at}")), "{at}: {error}");
        super::raw::released_once(&dropped);
    }
}

#[test]
fn threads_apply_at_once() {
    std::thread::scope(|s| {
        for t in 0..8 {
            s.spawn(move || {
                for i in 0..50 {
                    let x = Array::full(&[64], (t * 100 + i) as f32).unwrap();
                    let z = axpby(&x, &(&x + 1.0).unwrap()).unwrap();
                    assert_eq!(values(&z), [-(t as f32 * 100.0 + i as f32) - 3.0; 64]);
                }
            });
        }
    });
}

#[test]
fn several_results_and_places() {
    #[derive(Debug)]
    struct Both;
    impl Primitive for Both {
        fn name(&self) -> &str {
            "both"
        }
        fn outputs(&self) -> usize {
            2
        }
        fn compose(&self, inputs: &[ext::Array]) -> Result<Vec<ext::Array>> {
            Ok(vec![(&inputs[0] + 1.0)?, (&inputs[0] - 1.0)?])
        }
    }
    let stream = ultramarine::new_stream(ultramarine::Device::CPU).unwrap();
    let (x, _) = xy();
    let all = apply(Both, &[&(&x).into()], library_place(stream)).unwrap();
    let all: Vec<Array> = all.into_iter().map(Array::from).collect();
    assert_eq!(all[0].stream(), stream);
    assert_eq!(values(&all[1]), [0.0, 1.0, 2.0, 3.0]);
    assert_eq!(values(&all[0]), [2.0, 3.0, 4.0, 5.0]);
    let f = |x: &Array| {
        let all = apply(Both, &[&x.into()], Place::Default).map_err(from_library)?;
        let (a, b): (Array, Array) = (all[0].clone().into(), all[1].clone().into());
        a.multiply(&b)?.sum(None)
    };
    // (x + 1)(x - 1)' = 2 x; with one result unused, its cotangent is zero.
    assert_eq!(values(&grad(f)(&x).unwrap()), [2.0, 4.0, 6.0, 8.0]);
    assert_eq!(x.dtype(), Dtype::Float32);
}

/// Operators take arrays and results in every mix, and numbers.
#[test]
fn operators() {
    ext::connect_here();
    let (x, y) = (ext::Array::scalar(6.0f32).unwrap(), ext::Array::scalar(2.0f32).unwrap());
    for (got, want) in [
        (&x + &y, 8.0),
        (x.clone() - &y, 4.0),
        (&x * y.clone(), 12.0),
        (&x / 2.0, 3.0),
        (x.clone() % 4.0f32, 2.0),
        (1.0 - &x, -5.0),
        (1.0 / y.clone(), 0.5),
        (-&x, -6.0),
        (-x.clone(), -6.0),
        (&x * &y + &y, 14.0),
        (&x * 2.0 - y.clone(), 10.0),
        (&x - &y * 2.0, 2.0),
    ] {
        assert_eq!(Array::from(got.unwrap()).item::<f32>().unwrap(), want);
    }
    let misfit = ext::Array::zeros(&TensorType::new(&[2], ext::Dtype::Float32)).unwrap()
        + ext::Array::zeros(&TensorType::new(&[3], ext::Dtype::Float32)).unwrap();
    let text = misfit.as_ref().unwrap_err().to_string();
    assert_eq!((&x + misfit).unwrap_err().to_string(), text);
}
