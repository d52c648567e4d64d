//! Sorting and partitions.

use ultramarine::{
    Array, Result,
    transforms::{grad, jvp},
};

#[test]
fn sorting() -> Result<()> {
    let x = Array::from_slice(&[3.0f32, f32::NAN, 1.0, 2.0, 5.0, 4.0], &[2, 3])?;
    assert_eq!(x.argsort(Some(-1))?.to_vec::<u32>()?, [2, 0, 1, 0, 2, 1]);
    assert_eq!(x.sort(Some(0))?.to_vec::<f32>()?[..3], [2.0, 5.0, 1.0]);
    let y = Array::from_slice(&[4i32, 1, 3, 2], &[4])?;
    assert_eq!(y.topk(2, Some(0))?.to_vec::<i32>()?, [3, 4]);
    assert_eq!(y.topk(0, None)?.shape(), [0]);
    assert_eq!(y.partition(-1, None)?.to_vec::<i32>()?[3], 4);
    assert_eq!(x.sort(None)?.shape(), [6]);
    Ok(())
}

/// Partitions have their elements in an order of their own, which derivatives have to follow.
#[test]
fn derivatives_of_partitions_follow_their_order() -> Result<()> {
    let n = 3000;
    // Distinct, in no order.
    let v: Vec<f32> = (0..n).map(|i| (i * 1777 % n) as f32).collect();
    let weights: Vec<f32> = (0..n).map(|i| i as f32).collect();
    let (x, w) = (Array::from_slice(&v, &[n])?, Array::from_slice(&weights, &[n])?);
    for k in [0, 64, 1500, -1] {
        let parted = x.partition(k, None)?.to_vec::<f32>()?;
        let places = x.argpartition(k, None)?.to_vec::<u32>()?;
        let rank = k.rem_euclid(n as isize) as usize;
        let mut picked: Vec<f32> = places.iter().map(|i| v[*i as usize]).collect();
        for found in [&parted, &picked] {
            assert_eq!(found[rank], rank as f32);
            assert!(found[..rank].iter().all(|x| *x < rank as f32));
        }
        picked.sort_by(f32::total_cmp);
        assert_eq!(picked, weights);
        // Values are ranks, so the slope of an element is the weight where its value went.
        let mut went = vec![0.0; n];
        for (place, value) in parted.iter().enumerate() {
            went[*value as usize] = place as f32;
        }
        let slopes = grad(|x: &Array| x.partition(k, None)?.multiply(&w)?.sum(None))(&x)?;
        let wanted: Vec<f32> = v.iter().map(|value| went[*value as usize]).collect();
        assert_eq!(slopes.to_vec::<f32>()?, wanted, "{k}");
        let one =
            |inputs: &[Array]| -> Result<Vec<Array>> { Ok(vec![inputs[0].partition(k, None)?]) };
        let (_, tangents) = jvp(one, std::slice::from_ref(&x), std::slice::from_ref(&w))?;
        let mut value_to_tangent = vec![0.0; n];
        for (value, tangent) in v.iter().zip(&weights) {
            value_to_tangent[*value as usize] = *tangent;
        }
        let wanted: Vec<f32> =
            parted.iter().map(|value| value_to_tangent[*value as usize]).collect();
        assert_eq!(tangents[0].to_vec::<f32>()?, wanted, "{k}");
    }
    let largest: Vec<f32> = (n - 64..n).map(|i| i as f32).collect();
    assert_eq!(x.topk(64, None)?.to_vec::<f32>()?, largest);
    Ok(())
}
