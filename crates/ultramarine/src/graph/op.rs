//! An operation as a value: its attributes and their [`Rules`], inside a node.
//!
//! Attributes of any type fit into an [`Op`]. Small attributes are stored in the `Op` itself, so
//! that a node is a single allocation. Larger attributes are shared.

use super::rules::{Elementwise, Rules};
use crate::scalar::Scalar;
use std::any::TypeId;
use std::fmt::{self, Debug, Formatter};
use std::mem::MaybeUninit;
use std::sync::Arc;

/// Memory for attributes, or for an [`Arc`] if they do not fit. A view's attributes are the largest
/// that fit.
type Slot = MaybeUninit<[usize; 11]>;

/// The functions for attributes of one type. Each takes a slot in which [`store`] wrote such
/// attributes.
struct Table {
    type_id: TypeId,
    rules: for<'a> unsafe fn(&'a Slot) -> &'a dyn Rules,
    constant: unsafe fn(&Slot) -> Option<Scalar>,
    /// Clones into an empty slot.
    clone: unsafe fn(&Slot, &mut Slot),
    /// `None` if there is nothing to drop.
    drop: Option<unsafe fn(&mut Slot)>,
}

impl Table {
    const fn of<T: Rules + Clone>() -> &'static Table {
        const {
            &Table {
                type_id: TypeId::of::<T>(),
                rules: rules_in::<T>,
                constant: constant_in::<T>,
                clone: clone_in::<T>,
                drop: if is_inline::<T>() && !std::mem::needs_drop::<T>() {
                    None
                } else {
                    Some(drop_in::<T>)
                },
            }
        }
    }
}

/// True if a slot holds a `T` itself, false if it holds an `Arc<T>`.
const fn is_inline<T>() -> bool {
    size_of::<T>() <= size_of::<Slot>() && align_of::<T>() <= align_of::<Slot>()
}

/// Writes `value` itself into an empty slot.
#[inline]
fn put<V>(value: V, slot: &mut Slot) {
    assert!(is_inline::<V>());
    // SAFETY: the assertion above checks that the slot has the size and alignment of a `V`.
    unsafe { slot.as_mut_ptr().cast::<V>().write(value) };
}

/// Writes attributes into an empty slot.
#[inline]
fn store<T>(attributes: T, slot: &mut Slot) {
    if is_inline::<T>() { put(attributes, slot) } else { put(Arc::new(attributes), slot) }
}

/// The attributes in a slot.
///
/// # Safety
/// `store::<T>` wrote to the slot, or `clone_in::<T>` did, and it was not dropped.
unsafe fn stored<T>(slot: &Slot) -> &T {
    let at = slot.as_ptr();
    if is_inline::<T>() {
        // SAFETY: by contract there is a `T`, where `put` wrote it, as long as the slot is borrowed.
        unsafe { &*at.cast::<T>() }
    } else {
        // SAFETY: as above, for an `Arc<T>`.
        unsafe { &*at.cast::<Arc<T>>() }
    }
}

/// # Safety
/// As [`stored`].
unsafe fn rules_in<T: Rules>(slot: &Slot) -> &dyn Rules {
    // SAFETY: by the same contract.
    unsafe { stored::<T>(slot) }
}

/// # Safety
/// As [`stored`].
unsafe fn constant_in<T: Rules>(slot: &Slot) -> Option<Scalar> {
    // SAFETY: by the same contract.
    unsafe { stored::<T>(slot) }.constant()
}

/// # Safety
/// As [`stored`].
unsafe fn clone_in<T: Clone>(slot: &Slot, to: &mut Slot) {
    if is_inline::<T>() {
        // SAFETY: by the same contract.
        put(unsafe { stored::<T>(slot) }.clone(), to)
    } else {
        // SAFETY: by the same contract there is an `Arc<T>` where `put` wrote it.
        put(unsafe { &*slot.as_ptr().cast::<Arc<T>>() }.clone(), to)
    }
}

/// # Safety
/// As [`stored`]; the slot is not used again.
unsafe fn drop_in<T>(slot: &mut Slot) {
    let at = slot.as_mut_ptr();
    if is_inline::<T>() {
        // SAFETY: by the same contract, and the attributes are not used again.
        unsafe { at.cast::<T>().drop_in_place() }
    } else {
        // SAFETY: as above, for an `Arc<T>`.
        unsafe { at.cast::<Arc<T>>().drop_in_place() }
    }
}

/// Results of rules that planning needs for each node and operand. They are cached, because calls
/// through two tables would cost more than all other planning of a small node.
#[derive(Clone, Copy)]
struct Answers {
    elementwise: Option<Elementwise>,
    is_constant: bool,
    is_composite: bool,
    is_outside: bool,
    forwards_operands: bool,
    stand_in: Option<Transform>,
}

/// A transform that calls its function with placeholders, which never get a value.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Transform {
    Compile,
    Vmap,
}

/// An operation with its attributes and [`Rules`], or no operation ([`Op::GIVEN`]).
pub(crate) struct Op {
    /// The functions for the attributes in the slot. `None` if the slot is empty.
    table: Option<&'static Table>,
    answers: Answers,
    slot: Slot,
}

impl Op {
    /// The absence of an operation: the node was made with its value. Placeholders of transforms
    /// have no operation either; see [`Op::stand_in`].
    pub const GIVEN: Op = Op {
        table: None,
        answers: Answers {
            elementwise: None,
            is_constant: false,
            is_composite: false,
            is_outside: false,
            forwards_operands: false,
            stand_in: None,
        },
        slot: Slot::uninit(),
    };

    /// Marks a placeholder: a node without an operation, at which `transform` begins its trace.
    pub fn stand_in(transform: Transform) -> Op {
        let mut op = Op::GIVEN;
        op.answers.stand_in = Some(transform);
        op
    }

    /// Returns the transform, if the node is a placeholder. `None` for every other node.
    pub fn stands_in(&self) -> Option<Transform> {
        self.answers.stand_in
    }

    /// Makes the operation with these attributes. Small attributes are stored in place; see
    /// [`Op::is_inline`].
    #[inline(always)]
    pub fn new<T: Rules + Clone>(attributes: T) -> Op {
        // `Rules` requires that attributes are `Send` and `Sync`, like nodes. The attributes are
        // written directly to their final place.
        let mut op = Op::GIVEN;
        op.answers = Answers {
            elementwise: attributes.elementwise(),
            is_constant: attributes.constant().is_some(),
            is_composite: attributes.composite().is_some(),
            is_outside: attributes.outside().is_some(),
            forwards_operands: attributes.forwards_operands(),
            stand_in: None,
        };
        store(attributes, &mut op.slot);
        op.table = Some(Table::of::<T>());
        op
    }

    /// Returns true if attributes of this type are stored in the [`Op`] itself, without an
    /// allocation.
    pub const fn is_inline<T>() -> bool {
        is_inline::<T>()
    }

    /// Returns true for [`Op::GIVEN`] and placeholders, which have no rules.
    #[inline]
    pub fn is_given(&self) -> bool {
        self.table.is_none()
    }

    /// Returns the [`Rules`] of the operation. `None` for [`Op::GIVEN`] and placeholders.
    #[inline]
    pub fn rules(&self) -> Option<&dyn Rules> {
        let table = self.table?;
        // SAFETY: the slot holds attributes of the table's type from `new` or `clone` to `drop`.
        Some(unsafe { (table.rules)(&self.slot) })
    }

    /// Returns the attributes if they are a `T`, else `None`.
    #[inline]
    pub fn get<T: Rules>(&self) -> Option<&T> {
        // SAFETY: as for `rules`; the table's type is `T`.
        self.is::<T>().then(|| unsafe { stored::<T>(&self.slot) })
    }

    /// Returns true if the attributes are a `T`.
    #[inline]
    pub fn is<T: Rules>(&self) -> bool {
        self.table.is_some_and(|table| table.type_id == TypeId::of::<T>())
    }

    /// Returns a number for the type of the attributes. Different types have different numbers
    /// within a process.
    #[inline]
    pub fn kind(&self) -> u64 {
        self.table.map_or(0, |table| std::ptr::from_ref(table).addr() as u64)
    }

    /// Returns the name of the operation in MLX.
    pub fn name(&self) -> &'static str {
        self.rules().map_or("array", |r| r.name())
    }

    /// Returns true if it has a [`Rules::constant`].
    #[inline]
    pub fn is_constant(&self) -> bool {
        self.answers.is_constant
    }

    /// See [`Rules::constant`].
    #[inline]
    pub fn constant(&self) -> Option<Scalar> {
        let table = self.table.filter(|_| self.answers.is_constant)?;
        // SAFETY: as for `rules`.
        unsafe { (table.constant)(&self.slot) }
    }

    /// See [`Rules::forwards_operands`].
    #[inline]
    pub fn forwards_operands(&self) -> bool {
        self.answers.forwards_operands
    }

    /// See [`Rules::elementwise`].
    #[inline]
    pub fn elementwise(&self) -> Option<Elementwise> {
        self.answers.elementwise
    }

    /// True if there is a [`Rules::composite`].
    #[inline]
    pub fn is_composite(&self) -> bool {
        self.answers.is_composite
    }

    /// Returns true if there is a [`Rules::outside`].
    #[inline]
    pub fn is_outside(&self) -> bool {
        self.answers.is_outside
    }
}

impl<T: Rules + Clone> From<T> for Op {
    #[inline(always)]
    fn from(attributes: T) -> Op {
        Op::new(attributes)
    }
}

impl Clone for Op {
    fn clone(&self) -> Op {
        let mut op = Op::GIVEN;
        op.answers = self.answers;
        if let Some(table) = self.table {
            // SAFETY: the slot holds attributes of the table's type.
            unsafe { (table.clone)(&self.slot, &mut op.slot) };
            op.table = Some(table);
        }
        op
    }
}

impl Drop for Op {
    #[inline]
    fn drop(&mut self) {
        if let Some(Table { drop: Some(drop), .. }) = self.table {
            // SAFETY: the slot holds attributes of the table's type, and ends here.
            unsafe { drop(&mut self.slot) }
        }
    }
}

impl Debug for Op {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.rules() {
            Some(rules) => rules.fmt(f),
            None => f.write_str("Given"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{attribute::Attribute, draft::Draft, operation_key::OperationKey};

    /// Attributes that count their owners, with a payload.
    #[derive(Clone, Debug)]
    struct Counted<P>(Arc<()>, P);

    impl<P> Attribute for Counted<P> {
        fn encode(&self, _: &mut OperationKey) {}
    }

    impl<P: Clone + Debug + Send + Sync + 'static> Rules for Counted<P> {
        fn name(&self) -> &'static str {
            "counted"
        }

        fn admits(&self, _: &Draft<'_>) -> bool {
            true
        }
    }

    #[derive(Clone, Copy, Debug, PartialEq)]
    #[repr(align(64))]
    struct Aligned(u8);

    impl Attribute for Aligned {
        fn encode(&self, _: &mut OperationKey) {}
    }

    impl Rules for Aligned {
        fn name(&self) -> &'static str {
            "aligned"
        }

        fn admits(&self, _: &Draft<'_>) -> bool {
            true
        }
    }

    fn lies_in<T>(op: &Op, value: &T) -> bool {
        let at = std::ptr::from_ref(value).addr();
        let start = std::ptr::from_ref(op).addr();
        (start..start + size_of::<Op>()).contains(&at)
    }

    /// Owners of the count after each step, for a payload that is cloned with the operation or shared.
    fn counts<P: Clone + Debug + Send + Sync + PartialEq + 'static>(payload: P) -> [usize; 4] {
        let owner = Arc::new(());
        let op = Op::new(Counted(owner.clone(), payload.clone()));
        let made = Arc::strong_count(&owner);
        let clone = op.clone();
        let cloned = Arc::strong_count(&owner);
        drop(op);
        let dropped = Arc::strong_count(&owner);
        // The clone is moved, too.
        let boxed = Box::new(clone);
        let found = boxed.get::<Counted<P>>().map(|c| (Arc::strong_count(&c.0), &c.1));
        assert_eq!(found, Some((dropped, &payload)));
        assert_eq!(boxed.name(), "counted");
        drop(boxed);
        [made, cloned, dropped, Arc::strong_count(&owner)]
    }

    #[test]
    fn attributes_are_cloned_and_dropped_once() {
        assert_eq!(counts([7u8; 3]), [2, 3, 2, 1]);
        assert_eq!(counts([7usize; 10]), [2, 3, 2, 1]);
        // Shared by the clones.
        assert_eq!(counts([7usize; 11]), [2, 2, 2, 1]);
        assert_eq!(counts(vec![7usize; 11]), [2, 3, 2, 1]);
    }

    #[test]
    fn small_attributes_lie_in_the_operation() {
        let small = Op::new(Counted(Arc::new(()), [1usize; 10]));
        assert!(small.get::<Counted<[usize; 10]>>().is_some_and(|c| lies_in(&small, c)));
        let large = Op::new(Counted(Arc::new(()), [1usize; 11]));
        assert!(large.get::<Counted<[usize; 11]>>().is_some_and(|c| !lies_in(&large, c)));
    }

    #[test]
    fn attributes_are_aligned() {
        for op in [Op::new(Aligned(3)), Op::new(Aligned(3)).clone()] {
            let found = op.get::<Aligned>();
            assert_eq!(found, Some(&Aligned(3)));
            assert!(found.is_some_and(|a| std::ptr::from_ref(a).addr().is_multiple_of(64)));
        }
    }

    #[test]
    fn types_are_distinct() {
        let op = Op::new(Aligned(3));
        assert!(op.is::<Aligned>() && !op.is::<Counted<()>>() && op.get::<Counted<()>>().is_none());
        assert!(!op.is_given() && format!("{op:?}") == "Aligned(3)");
        for given in [Op::GIVEN, Op::GIVEN.clone()] {
            assert!(given.is_given() && !given.is::<Aligned>() && given.rules().is_none());
            assert_eq!((given.name(), format!("{given:?}").as_str()), ("array", "Given"));
        }
    }
}
