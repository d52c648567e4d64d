//! Fields of modules: collections of modules, and plain values without parameters.

use super::base::{Module, Visitor, VisitorMut};
use std::collections::BTreeMap;
use std::marker::PhantomData;
use ultramarine::{Dtype, Quantization};

macro_rules! without_parameters {
    ($([$($generics:tt)*] $of:ty;)*) => {$(
        impl<$($generics)*> Module for $of {
            fn visit(&self, _: &mut Visitor<'_>) {}
            fn visit_mut(&mut self, _: &mut VisitorMut<'_>) {}
        }
    )*};
}

without_parameters! {
    [] ();
    [] bool;
    [] char;
    [] u8; [] u16; [] u32; [] u64; [] u128; [] usize;
    [] i8; [] i16; [] i32; [] i64; [] i128; [] isize;
    [] f32; [] f64;
    [] String;
    [] &'static str;
    [] Dtype;
    [] Quantization;
    [T: ?Sized] PhantomData<T>;
    [A: ?Sized, R] for<'a> fn(&'a A) -> R;
}

impl<M: Module + ?Sized> Module for Box<M> {
    fn visit(&self, visitor: &mut Visitor<'_>) {
        (**self).visit(visitor);
    }

    fn visit_mut(&mut self, visitor: &mut VisitorMut<'_>) {
        (**self).visit_mut(visitor);
    }
}

impl<M: Module> Module for Option<M> {
    fn visit(&self, visitor: &mut Visitor<'_>) {
        self.iter().for_each(|m| m.visit(visitor));
    }

    fn visit_mut(&mut self, visitor: &mut VisitorMut<'_>) {
        self.iter_mut().for_each(|m| m.visit_mut(visitor));
    }
}

impl<M: Module> Module for [M] {
    fn visit(&self, visitor: &mut Visitor<'_>) {
        self.iter().enumerate().for_each(|(i, m)| visitor.field(&i.to_string(), m));
    }

    fn visit_mut(&mut self, visitor: &mut VisitorMut<'_>) {
        self.iter_mut().enumerate().for_each(|(i, m)| visitor.field(&i.to_string(), m));
    }
}

impl<M: Module> Module for Vec<M> {
    fn visit(&self, visitor: &mut Visitor<'_>) {
        self[..].visit(visitor);
    }

    fn visit_mut(&mut self, visitor: &mut VisitorMut<'_>) {
        self[..].visit_mut(visitor);
    }
}

impl<M: Module, const N: usize> Module for [M; N] {
    fn visit(&self, visitor: &mut Visitor<'_>) {
        self[..].visit(visitor);
    }

    fn visit_mut(&mut self, visitor: &mut VisitorMut<'_>) {
        self[..].visit_mut(visitor);
    }
}

impl<M: Module> Module for BTreeMap<String, M> {
    fn visit(&self, visitor: &mut Visitor<'_>) {
        self.iter().for_each(|(name, m)| visitor.field(name, m));
    }

    fn visit_mut(&mut self, visitor: &mut VisitorMut<'_>) {
        self.iter_mut().for_each(|(name, m)| visitor.field(name, m));
    }
}

macro_rules! tuples {
    ($(($($t:ident $i:tt),+))*) => {$(
        impl<$($t: Module),+> Module for ($($t,)+) {
            fn visit(&self, visitor: &mut Visitor<'_>) {
                $(visitor.field(stringify!($i), &self.$i);)+
            }

            fn visit_mut(&mut self, visitor: &mut VisitorMut<'_>) {
                $(visitor.field(stringify!($i), &mut self.$i);)+
            }
        }
    )*};
}

tuples! {
    (A 0)
    (A 0, B 1)
    (A 0, B 1, C 2)
    (A 0, B 1, C 2, D 3)
    (A 0, B 1, C 2, D 3, E 4)
    (A 0, B 1, C 2, D 3, E 4, F 5)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7)
}
