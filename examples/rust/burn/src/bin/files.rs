//! Arrays written to and read from files: safetensors. NumPy's npz is not there.
//!
//! Only modules are written, so the two tensors are parameters of one; a model to read into has to be made first, and the
//! metadata is not given back.

use burn::module::{Param, ParamId};
use burn::prelude::*;
use burn::store::{ModuleSnapshot, SafetensorsStore};
use std::env::temp_dir;

#[derive(Module, Debug)]
struct Arrays {
    weight: Param<Tensor<2>>,
    steps: Param<Tensor<1, Int>>,
}

impl Arrays {
    fn empty(device: &Device) -> Arrays {
        Arrays {
            weight: Param::from_tensor(Tensor::zeros([2, 3], device)),
            steps: Param::initialized(ParamId::new(), Tensor::zeros([3], device)),
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::flex();
    let weight = Tensor::<1, Int>::arange(0..6, &device).float().reshape([2, 3]);
    let steps = Tensor::from_ints([10, 20, 30], &device);
    let arrays = Arrays {
        weight: Param::from_tensor(weight),
        steps: Param::initialized(ParamId::new(), steps),
    };

    let path = temp_dir().join("burn-six.safetensors");
    let mut store = SafetensorsStore::from_file(&path).metadata("made by", "burn").overwrite(true);
    arrays.save_into(&mut store)?;
    let mut loaded = Arrays::empty(&device);
    loaded.load_from(&mut SafetensorsStore::from_file(&path))?;
    arrays.weight.val().into_data().assert_eq(&loaded.weight.val().into_data(), true);
    arrays.steps.val().into_data().assert_eq(&loaded.steps.val().into_data(), true);
    println!("{}: weight {}, steps {}", path.display(), loaded.weight.val(), loaded.steps.val());

    // The text alone says what went wrong.
    match loaded.load_from(&mut SafetensorsStore::from_file("missing.safetensors")) {
        Err(error) => println!("{error}"),
        Ok(_) => panic!("there is a file that is missing"),
    }
    Ok(())
}
