//! A primitive of one's own, squareplus(x) = (x + sqrt(x^2 + b)) / 2, with a kernel and a gradient.

use burn::backend::autodiff::NodeId;
use burn::backend::autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind, unary};
use burn::backend::flex::FlexTensor;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, Flex, backend_extension};
use burn::prelude::*;

#[backend_extension(Flex, Autodiff)]
trait SquareplusOps: Backend {
    fn squareplus(x: FloatTensor<Self>, b: f32) -> FloatTensor<Self>;
}

impl SquareplusOps for Flex {
    fn squareplus(x: FloatTensor<Self>, b: f32) -> FloatTensor<Self> {
        let mut x: FlexTensor = x.to_contiguous();
        for x in x.storage_mut::<f32>() {
            *x = (*x + (*x * *x + b).sqrt()) / 2.0;
        }
        x
    }
}

impl<B: SquareplusOps, C: CheckpointStrategy> SquareplusOps for Autodiff<B, C> {
    fn squareplus(x: FloatTensor<Self>, b: f32) -> FloatTensor<Self> {
        match SquareplusBackward.prepare::<C>([x.node()]).compute_bound().stateful() {
            OpsKind::Tracked(mut prepared) => {
                let state = (prepared.checkpoint(&x), b);
                prepared.finish(state, B::squareplus(x.into_primitive(), b))
            }
            OpsKind::UnTracked(prepared) => prepared.finish(B::squareplus(x.into_primitive(), b)),
        }
    }
}

#[derive(Debug)]
struct SquareplusBackward;

impl<B: Backend> Backward<B, 1> for SquareplusBackward {
    type State = (NodeId, f32);

    /// The slope is (1 + x / sqrt(x^2 + b)) / 2.
    fn backward(
        self,
        ops: Ops<Self::State, 1>,
        gradients: &mut Gradients,
        checkpointer: &mut Checkpointer,
    ) {
        let (x, b) = ops.state;
        let x: FloatTensor<B> = checkpointer.retrieve_node_output(x);
        unary::<B, _>(ops.parents, ops.node, gradients, |cotangent| {
            let square = B::float_mul(x.clone(), x.clone());
            let root = B::float_sqrt(B::float_add_scalar(square, b.into()));
            let slope = B::float_add_scalar(B::float_div(x, root), 1.0.into());
            B::float_mul(cotangent, B::float_mul_scalar(slope, 0.5.into()))
        });
    }
}

fn squareplus<const D: usize>(x: Tensor<D>, b: f32) -> Tensor<D> {
    Tensor::from_dispatch(Dispatch::squareplus(x.into_dispatch(), b))
}

fn main() {
    let device = Device::flex().autodiff();
    let x = Tensor::<1>::from_floats([-3.0, 0.0, 1.5], &device).require_grad();
    println!("squareplus: {}", squareplus(x.clone(), 4.0));
    let sum = squareplus(x.clone(), 4.0).sum();
    let gradients = sum.backward();
    let slope = x.grad(&gradients).unwrap();
    println!("sum {:.4}, slopes {slope}", sum.clone().into_scalar::<f32>());
    assert!((sum.into_scalar::<f32>() - 3.3028).abs() < 1e-3);
    let expected = Tensor::<1>::from_floats([0.08397, 0.5, 0.8], &Device::flex());
    assert!(slope.all_close(expected, Some(1e-3), Some(1e-4)));
}
