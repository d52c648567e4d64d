//! Operations from outside: by name, version and attributes, made again by their package.

use super::{check, exported, program, read};
use crate::support::arrays::f64s;
use serde_json::{Value, json};
use ultramarine::extension::{
    self as library, AttributeReader, Attributes, Derivatives, Primitive, Restore, TensorType,
    call_one, provide,
};
use ultramarine::io::Arrays;
use ultramarine::transforms::grad;
use ultramarine::{Array, Error, Result};

/// `factor x`, with a derivative.
#[derive(Debug)]
struct Scaled {
    factor: f64,
}

impl Primitive for Scaled {
    fn name(&self) -> &str {
        Scaled::NAME
    }

    fn version(&self) -> u32 {
        3
    }

    fn attributes(&self) -> Attributes {
        Attributes::new().float(self.factor)
    }

    fn infer(&self, inputs: &[TensorType]) -> library::Result<Vec<TensorType>> {
        match inputs {
            [one] => Ok(vec![one.clone()]),
            _ => Err(library::Error::value("one operand")),
        }
    }

    fn compose(&self, inputs: &[library::Array]) -> library::Result<Vec<library::Array>> {
        Ok(vec![(&inputs[0] * self.factor)?])
    }

    fn vjp(&self, of: &library::Vjp<'_>) -> Derivatives {
        let scaled = library::apply_one(
            Scaled { factor: self.factor },
            &[&of.cotangent()?],
            library::Place::Default,
        )?;
        Ok(vec![Some(scaled)])
    }
}

impl Restore for Scaled {
    const NAME: &'static str = "test_scaled";

    fn restore(version: u32, attributes: &mut AttributeReader<'_>) -> library::Result<Scaled> {
        match version {
            3 => Ok(Scaled { factor: attributes.float()? }),
            _ => Err(library::Error::value(format!("there is no version {version}"))),
        }
    }
}

/// Without a way to be made again.
#[derive(Debug)]
struct Lost;

impl Primitive for Lost {
    fn name(&self) -> &str {
        "test_lost"
    }

    fn compose(&self, inputs: &[library::Array]) -> library::Result<Vec<library::Array>> {
        Ok(inputs.to_vec())
    }
}

fn refused(file: Result<ultramarine::Function>, text: &str) {
    match file {
        Err(Error::Runtime(message)) if message.to_string().contains(text) => {}
        other => panic!("{other:?} does not say {text:?}"),
    }
}

#[test]
fn primitives_are_made_again() -> Result<()> {
    provide::<Scaled>("a package of tests")?;
    let x = Array::from_slice(&[1.0f32, 2.0], &[2])?;
    let f = |x: &[Array]| Ok(vec![call_one(Scaled { factor: 2.5 }, &[x[0].exp()?])?]);
    let text = check("scaled", f, [&x]);
    let gradient = |x: &[Array]| {
        Ok(vec![grad(|x: &Array| call_one(Scaled { factor: 2.5 }, &[x])?.sum(..))(&x[0])?])
    };
    check("gradient", gradient, [&x]);
    let function = read(&exported(f, [&x], false)?)?;
    let of_file = grad(|x: &Array| function.call([x])?[0].sum(..))(&x)?;
    assert_eq!(f64s(&of_file)[0] as f32, 2.5 * 1f32.exp());
    // Files that lie.
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut program: Value = serde_json::from_str(&text).expect("JSON");
        change(&mut program["traces"][0]["steps"][1]["op"]);
        read(&super::hostile::file_of(program.to_string().as_bytes(), &Arrays::new()))
    };
    assert!(changed(&|_| ()).is_ok());
    let of = |key: &'static str, value: Value| {
        move |op: &mut Value| op["attributes"][key] = value.clone()
    };
    let named = changed(&of("name", json!("test_unknown")));
    refused(
        named,
        "[test_unknown] The operation belongs to the package a package of tests, which is not imported",
    );
    refused(changed(&of("version", json!(4))), "there is no version 4");
    refused(changed(&of("attributes", json!([1, 2]))), "truncated");
    refused(changed(&of("attributes", json!([0, 0, 0, 0, 0, 0, 0, 0, 0]))), "left over");
    refused(changed(&of("attributes", json!([256]))), "instead of u8");
    refused(changed(&of("outputs", json!(2))), "made another primitive");
    refused(changed(&|op| op["gives"] = json!([["float32", [3]]])), "does not give");
    refused(changed(&|op| op["of"] = json!([])), "does not give");
    Ok(())
}

#[test]
fn primitives_that_are_not_provided_are_refused() -> Result<()> {
    let x = Array::scalar(1.0f32);
    let f = |x: &[Array]| Ok(vec![call_one(Lost, x)?]);
    let outcome = exported(f, [&x], false).map(|file| program(&file));
    assert!(
        matches!(&outcome, Err(Error::Value(text)) if text.to_string().contains("does not register it for import")),
        "{outcome:?}"
    );
    Ok(())
}
