//! Attention and cross entropy from Rust: masks, sinks, gradients and errors. Python's tests compare values with MLX.

use ultramarine::fast::{AttentionMask, cross_entropy, scaled_dot_product_attention};
use ultramarine::{Array, Error, Result, transforms};

fn line(values: &[f32]) -> Result<Array> {
    Array::from_slice(values, &[1, 1, values.len(), 1])
}

/// Keys of 0 weigh the same, so results are means of the values that are seen.
#[test]
fn masks_choose_the_keys() -> Result<()> {
    let (zeros, v) = (line(&[0.0, 0.0, 0.0])?, line(&[3.0, 6.0, 12.0])?);
    let attend = |mask, sinks: Option<&Array>| {
        scaled_dot_product_attention(&zeros, &zeros, &v, 1.0, mask, sinks, None)?.to_vec::<f32>()
    };
    assert_eq!(attend(AttentionMask::None, None)?, [7.0; 3]);
    assert_eq!(attend(AttentionMask::Causal, None)?, [3.0, 4.5, 7.0]);
    let seen = Array::from_slice(&[true, false, true], &[3])?;
    assert_eq!(attend(AttentionMask::Array(&seen), None)?, [7.5; 3]);
    let added = Array::from_slice(&[f32::NEG_INFINITY, 0.0, 0.0], &[3])?;
    assert_eq!(attend(AttentionMask::Array(&added), None)?, [9.0; 3]);
    // A sink of the same score is a fourth key without a value.
    let sink = Array::from_slice(&[0.0f32], &[1])?;
    assert_eq!(attend(AttentionMask::None, Some(&sink))?, [5.25; 3]);
    Ok(())
}

#[test]
fn gradients_reach_values_and_sinks() -> Result<()> {
    let (zeros, v) = (line(&[0.0, 0.0, 0.0])?, line(&[3.0, 6.0, 12.0])?);
    let sink = Array::from_slice(&[0.0f32], &[1])?;
    let sum = |x: &[Array]| {
        let none = AttentionMask::None;
        let y = scaled_dot_product_attention(&zeros, &zeros, &x[0], 1.0, none, Some(&x[1]), None)?;
        Ok(vec![y.sum(None)?])
    };
    let one = Array::from_slice(&[1.0f32], &[])?;
    let (_, gradients) = transforms::vjp(sum, &[v, sink], &[one])?;
    assert_eq!(gradients[0].to_vec::<f32>()?, [0.75; 3]);
    // Each row is 21 / (3 + e^sink), three of them.
    assert_eq!(gradients[1].to_vec::<f32>()?, [-3.0 * 21.0 / 16.0]);
    Ok(())
}

#[test]
fn sizes_that_do_not_fit_are_named() -> Result<()> {
    let x = Array::from_slice(&[0.0f32; 12], &[1, 3, 2, 2])?;
    let two = Array::from_slice(&[0.0f32; 8], &[1, 2, 2, 2])?;
    let attend =
        |q, k, v| scaled_dot_product_attention(q, k, v, 1.0, AttentionMask::None, None, None);
    let text = attend(&x, &two, &two).unwrap_err().to_string();
    assert!(text.contains("n_heads 3 for n_kv_heads 2"), "{text}");
    let text = attend(&two, &two, &x).unwrap_err().to_string();
    assert!(text.contains("n_kv_heads"), "{text}");
    let targets = Array::from_slice(&[0i32; 3], &[3])?;
    let wrong = cross_entropy(&x, &targets);
    assert!(matches!(wrong, Err(Error::Value(_))), "{wrong:?}");
    Ok(())
}
