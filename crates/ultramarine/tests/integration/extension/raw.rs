//! Primitives made of tables, without the SDK: rules are closures, and may misbehave.
use std::ffi::{CString, c_char, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use ultramarine::extension::{
    borrow_handle, give_error, host_table, own_handle, set_poison, take_error, take_handle,
};
use ultramarine::{Array, Dtype, Error, Result};
use ultramarine_abi::{self as abi, Status, extension as ext, status};

/// What a rule answers, if it does not succeed.
pub enum Answer {
    /// There is no such rule.
    Unsupported,
    /// A status without an error object.
    Mute(Status),
    /// An error.
    Error(Error),
}

impl From<Error> for Answer {
    fn from(error: Error) -> Answer {
        Answer::Error(error)
    }
}

/// A value error of a rule's own.
pub fn wrong<T>(text: &str) -> Outcome<T> {
    Err(Answer::Error(Error::Value(text.into())))
}

pub type Outcome<T = ()> = std::result::Result<T, Answer>;
pub type Handles = Vec<*mut ext::ArrayHandle>;
type Some_ = Vec<Option<Array>>;
type Infer = dyn Fn(&[ext::TensorType], &mut [ext::TensorType]) -> Outcome + Send + Sync;
type Eval = dyn Fn(&Call) -> Outcome + Send + Sync;
type Compose = dyn Fn(&[Array]) -> Outcome<Some_> + Send + Sync;
type Vjp = dyn Fn(&[Array], &[Array], &[Option<Array>], &[bool]) -> Outcome<Some_> + Send + Sync;
type Jvp = dyn Fn(&[Array], &[Option<Array>]) -> Outcome<Some_> + Send + Sync;
type Vmap = dyn Fn(&[Array], &[i32], i64) -> Outcome<(Some_, Vec<i32>)> + Send + Sync;

/// An evaluation's call, as a rule sees it.
pub struct Call(pub ext::EvalCall);

impl Call {
    pub fn input(&self, i: usize) -> ext::View {
        assert!(i < self.0.n_inputs as usize);
        unsafe { self.0.inputs.byte_add(i * self.0.view_stride as usize).read() }
    }

    pub fn output(&self, i: usize) -> ext::View {
        assert!(i < self.0.n_outputs as usize);
        unsafe { self.0.outputs.byte_add(i * self.0.view_stride as usize).read() }
    }

    /// Calls a function of the table that has an error.
    pub fn ask(&self, f: impl FnOnce(*mut c_void, *mut *mut abi::Error) -> Status) -> Outcome {
        let mut error = std::ptr::null_mut();
        let code = f(self.0.host_call, &mut error);
        outcome(code, error)
    }
}

/// Status and error object of the host.
pub fn outcome(code: Status, error: *mut abi::Error) -> Outcome {
    match (code, error.is_null()) {
        (status::OK, _) => Ok(()),
        (status::UNSUPPORTED, true) => Err(Answer::Unsupported),
        (code, true) => Err(Answer::Mute(code)),
        (_, false) => Err(Answer::Error(unsafe { take_error(error) })),
    }
}

/// The elements of a view, wherever they lie.
pub fn elements<T: Copy>(view: &ext::View) -> Vec<T> {
    let n = view.ndim as usize;
    let (shape, strides) = unsafe {
        (std::slice::from_raw_parts(view.shape, n), std::slice::from_raw_parts(view.strides, n))
    };
    let mut out = Vec::new();
    let mut index = vec![0i64; n];
    for _ in 0..view.elements {
        let at: i64 = index.iter().zip(strides).map(|(i, s)| i * s).sum();
        out.push(unsafe { *(view.data as *const T).offset(at as isize) });
        for d in (0..n).rev() {
            index[d] += 1;
            if index[d] < shape[d] {
                break;
            }
            index[d] = 0;
        }
    }
    out
}

/// Writes elements to a row-major view.
pub fn write<T: Copy>(view: &ext::View, values: impl IntoIterator<Item = T>) {
    assert!(view.flags & ext::view::ROW_CONTIGUOUS != 0);
    let mut n = 0;
    for (i, value) in values.into_iter().enumerate() {
        assert!((i as i64) < view.elements);
        unsafe { (view.data as *mut T).add(i).write(value) };
        n = i as i64 + 1;
    }
    assert!(n <= view.elements);
}

/// A primitive.
pub struct Table {
    pub name: &'static str,
    pub version: u32,
    pub flags: u32,
    pub n_outputs: u32,
    pub attributes: Vec<u8>,
    pub infer: Option<Box<Infer>>,
    pub eval_cpu: Option<Box<Eval>>,
    pub eval_gpu: Option<Box<Eval>>,
    pub compose: Option<Box<Compose>>,
    pub vjp: Option<Box<Vjp>>,
    pub jvp: Option<Box<Jvp>>,
    pub vmap: Option<Box<Vmap>>,
    pub print: Option<String>,
    /// Counts what was released.
    pub released: Arc<AtomicUsize>,
}

impl Drop for Table {
    fn drop(&mut self) {
        self.released.fetch_add(1, Ordering::SeqCst);
    }
}

impl Table {
    /// A primitive whose outputs are like the inputs broadcast, and that has no other rule yet.
    pub fn new(name: &'static str) -> Table {
        Table {
            name,
            version: 1,
            flags: 0,
            n_outputs: 1,
            attributes: Vec::new(),
            infer: Some(Box::new(|inputs, outputs| {
                let first = inputs[0];
                outputs.iter_mut().for_each(|o| *o = first);
                Ok(())
            })),
            eval_cpu: None,
            eval_gpu: None,
            compose: None,
            vjp: None,
            jvp: None,
            vmap: None,
            print: None,
            released: Arc::default(),
        }
    }

    /// Sets infer to fixed shapes and dtypes.
    pub fn giving(mut self, outputs: &[(&[usize], Dtype)]) -> Table {
        let all: Vec<_> = outputs.iter().map(|(s, d)| tensor_type(s, *d)).collect();
        self.n_outputs = all.len() as u32;
        self.infer = Some(Box::new(move |_, outputs| {
            outputs.copy_from_slice(&all);
            Ok(())
        }));
        self
    }

    pub fn eval(mut self, f: impl Fn(&Call) -> Outcome + Send + Sync + 'static) -> Table {
        self.eval_cpu = Some(Box::new(f));
        self
    }

    pub fn gpu(mut self, f: impl Fn(&Call) -> Outcome + Send + Sync + 'static) -> Table {
        self.eval_gpu = Some(Box::new(f));
        self
    }

    pub fn compose(
        mut self,
        f: impl Fn(&[Array]) -> Outcome<Some_> + Send + Sync + 'static,
    ) -> Table {
        self.compose = Some(Box::new(f));
        self
    }

    pub fn vjp(
        mut self,
        f: impl Fn(&[Array], &[Array], &[Option<Array>], &[bool]) -> Outcome<Some_>
        + Send
        + Sync
        + 'static,
    ) -> Table {
        self.vjp = Some(Box::new(f));
        self
    }

    pub fn jvp(
        mut self,
        f: impl Fn(&[Array], &[Option<Array>]) -> Outcome<Some_> + Send + Sync + 'static,
    ) -> Table {
        self.jvp = Some(Box::new(f));
        self
    }

    pub fn vmap(
        mut self,
        f: impl Fn(&[Array], &[i32], i64) -> Outcome<(Some_, Vec<i32>)> + Send + Sync + 'static,
    ) -> Table {
        self.vmap = Some(Box::new(f));
        self
    }

    pub fn allocates(mut self) -> Table {
        self.flags = ext::primitive::ALLOCATES;
        self
    }

    /// Applies it.
    pub fn apply(self, inputs: &[Array]) -> Result<Vec<Array>> {
        self.apply_with(inputs, |_| {})
    }

    /// Applies a table that `spoil` has changed.
    pub fn apply_with(
        self,
        inputs: &[Array],
        spoil: impl FnOnce(&mut ext::Primitive),
    ) -> Result<Vec<Array>> {
        let n = self.n_outputs as usize;
        let name = CString::new(self.name).unwrap();
        let table = Box::new(self);
        let mut primitive = ext::Primitive {
            size: size_of::<ext::Primitive>() as u32,
            flags: table.flags,
            name: name.as_ptr(),
            version: table.version,
            n_outputs: table.n_outputs,
            attributes: table.attributes.as_ptr() as *const c_void,
            attribute_bytes: table.attributes.len() as u64,
            context: std::ptr::null_mut(),
            infer: table.infer.is_some().then_some(infer as _),
            eval_cpu: table.eval_cpu.is_some().then_some(eval_cpu as _),
            eval_gpu: table.eval_gpu.is_some().then_some(eval_gpu as _),
            compose: table.compose.is_some().then_some(compose as _),
            vjp: table.vjp.is_some().then_some(vjp as _),
            jvp: table.jvp.is_some().then_some(jvp as _),
            vmap: table.vmap.is_some().then_some(vmap as _),
            equivalent: None,
            print: table.print.is_some().then_some(print as _),
            release: Some(release),
        };
        primitive.context = Box::into_raw(table) as *mut c_void;
        spoil(&mut primitive);
        let handles: Handles = inputs.iter().map(borrow_handle).collect();
        let mut outputs = vec![std::ptr::null_mut(); n.min(100)];
        let mut error = std::ptr::null_mut();
        let code = unsafe {
            (host_table().apply.unwrap())(
                std::ptr::null_mut(),
                &primitive,
                handles.as_ptr(),
                handles.len() as u32,
                std::ptr::null(),
                outputs.as_mut_ptr(),
                &mut error,
            )
        };
        match outcome(code, error) {
            Ok(()) => Ok(outputs.into_iter().map(|h| unsafe { take_handle(h) }).collect()),
            Err(Answer::Error(error)) => Err(error),
            Err(_) => panic!("apply failed without an error, {code}"),
        }
    }

    /// Applies it, for its only output.
    pub fn one(self, inputs: &[Array]) -> Result<Array> {
        Ok(self.apply(inputs)?.remove(0))
    }
}

pub fn tensor_type(shape: &[usize], dtype: Dtype) -> ext::TensorType {
    let mut sizes = [0; abi::MAX_NDIM];
    shape.iter().zip(&mut sizes).for_each(|(n, to)| *to = *n as i64);
    ext::TensorType {
        size: size_of::<ext::TensorType>() as u32,
        ndim: shape.len() as i32,
        dtype: dtype.to_dl(),
        reserved: 0,
        shape: sizes,
    }
}

unsafe fn table<'a>(context: *mut c_void) -> &'a Table {
    unsafe { &*(context as *const Table) }
}

/// Passes an answer on, as C would.
unsafe fn answer(outcome: Outcome, error: *mut *mut abi::Error) -> Status {
    assert!(!error.is_null());
    match outcome {
        Ok(()) => status::OK,
        Err(Answer::Unsupported) => status::UNSUPPORTED,
        Err(Answer::Mute(code)) => code,
        Err(Answer::Error(e)) => {
            unsafe { *error = give_error(e) };
            status::ERROR
        }
    }
}

/// Arrays of one's own of borrowed handles.
unsafe fn borrowed(at: *const *mut ext::ArrayHandle, n: usize) -> Vec<Array> {
    unsafe { optional(at, n) }.into_iter().map(|a| a.expect("not NULL")).collect()
}

unsafe fn optional(at: *const *mut ext::ArrayHandle, n: usize) -> Some_ {
    let retain = host_table().array_retain.unwrap();
    (0..n)
        .map(|i| unsafe {
            let handle = *at.add(i);
            (!handle.is_null()).then(|| take_handle(retain(std::ptr::null_mut(), handle)))
        })
        .collect()
}

/// Hands arrays out.
unsafe fn hand_out(arrays: Some_, to: *mut *mut ext::ArrayHandle) {
    for (i, array) in arrays.into_iter().enumerate() {
        unsafe {
            assert!((*to.add(i)).is_null());
            *to.add(i) = array.map_or(std::ptr::null_mut(), own_handle);
        }
    }
}

unsafe extern "C" fn infer(
    context: *mut c_void,
    inputs: *const ext::TensorType,
    n: u32,
    outputs: *mut ext::TensorType,
    error: *mut *mut abi::Error,
) -> Status {
    unsafe {
        let table = table(context);
        let inputs: Vec<ext::TensorType> = match n {
            0 => Vec::new(),
            _ => (0..n as usize)
                .map(|i| inputs.byte_add(i * (*inputs).size as usize).read())
                .collect(),
        };
        let outputs = std::slice::from_raw_parts_mut(outputs, table.n_outputs as usize);
        answer((table.infer.as_ref().unwrap())(&inputs, outputs), error)
    }
}

unsafe extern "C" fn eval_cpu(
    context: *mut c_void,
    call: *const ext::EvalCall,
    error: *mut *mut abi::Error,
) -> Status {
    unsafe { answer((table(context).eval_cpu.as_ref().unwrap())(&Call(*call)), error) }
}

unsafe extern "C" fn eval_gpu(
    context: *mut c_void,
    call: *const ext::EvalCall,
    error: *mut *mut abi::Error,
) -> Status {
    unsafe { answer((table(context).eval_gpu.as_ref().unwrap())(&Call(*call)), error) }
}

unsafe extern "C" fn compose(
    context: *mut c_void,
    inputs: *const *mut ext::ArrayHandle,
    n: u32,
    outputs: *mut *mut ext::ArrayHandle,
    error: *mut *mut abi::Error,
) -> Status {
    unsafe {
        let found = (table(context).compose.as_ref().unwrap())(&borrowed(inputs, n as usize));
        answer(found.map(|all| hand_out(all, outputs)), error)
    }
}

#[allow(clippy::too_many_arguments)]
unsafe extern "C" fn vjp(
    context: *mut c_void,
    inputs: *const *mut ext::ArrayHandle,
    n: u32,
    outputs: *const *mut ext::ArrayHandle,
    cotangents: *const *mut ext::ArrayHandle,
    wanted: *const u8,
    results: *mut *mut ext::ArrayHandle,
    error: *mut *mut abi::Error,
) -> Status {
    unsafe {
        let table = table(context);
        let m = table.n_outputs as usize;
        let wanted: Vec<bool> = (0..n as usize).map(|i| *wanted.add(i) != 0).collect();
        let found = (table.vjp.as_ref().unwrap())(
            &borrowed(inputs, n as usize),
            &borrowed(outputs, m),
            &optional(cotangents, m),
            &wanted,
        );
        answer(found.map(|all| hand_out(all, results)), error)
    }
}

unsafe extern "C" fn jvp(
    context: *mut c_void,
    inputs: *const *mut ext::ArrayHandle,
    n: u32,
    tangents: *const *mut ext::ArrayHandle,
    results: *mut *mut ext::ArrayHandle,
    error: *mut *mut abi::Error,
) -> Status {
    unsafe {
        let found = (table(context).jvp.as_ref().unwrap())(
            &borrowed(inputs, n as usize),
            &optional(tangents, n as usize),
        );
        answer(found.map(|all| hand_out(all, results)), error)
    }
}

unsafe extern "C" fn vmap(
    context: *mut c_void,
    inputs: *const *mut ext::ArrayHandle,
    n: u32,
    axes: *const i32,
    batch: i64,
    outputs: *mut *mut ext::ArrayHandle,
    output_axes: *mut i32,
    error: *mut *mut abi::Error,
) -> Status {
    unsafe {
        let axes = std::slice::from_raw_parts(axes, n as usize);
        let rule = table(context).vmap.as_ref().unwrap();
        let found = rule(&borrowed(inputs, n as usize), axes, batch);
        let found = found.map(|(all, axes)| {
            hand_out(all, outputs);
            axes.iter().enumerate().for_each(|(i, a)| *output_axes.add(i) = *a);
        });
        answer(found, error)
    }
}

unsafe extern "C" fn print(context: *mut c_void, text: *mut c_char, room: u64) -> u64 {
    unsafe {
        let all = table(context).print.as_ref().unwrap();
        let n = all.len().min(room as usize);
        std::ptr::copy_nonoverlapping(all.as_ptr(), text as *mut u8, n);
        all.len() as u64
    }
}

unsafe extern "C" fn release(context: *mut c_void) {
    drop(unsafe { Box::from_raw(context as *mut Table) });
}

/// Evaluates with poison on.
pub fn poisoned(table: Table, inputs: &[Array]) -> Result<Vec<Array>> {
    set_poison(true);
    let outcome = table.apply(inputs).and_then(|all| {
        ultramarine::eval(&all)?;
        Ok(all)
    });
    set_poison(false);
    outcome
}

/// Waits until a context was released, by whichever thread let go of it last; then it was once.
#[track_caller]
pub fn released_once(count: &AtomicUsize) {
    let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while count.load(Ordering::SeqCst) == 0 && std::time::Instant::now() < end {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert_eq!(count.load(Ordering::SeqCst), 1);
}
