//! Every struct of the contract with its fields, and the lines that Rust and C print of them.

use std::fmt::Write;
use ultramarine_abi::{
    dlpack::exchange,
    extension,
    interface::{
        about, collective, fused, kernel, memory, peer, replay, statistics, stream_memory, timing,
        upload,
    },
    *,
};

/// A struct: its name in C, size, alignment, and fields with their offsets and sizes.
struct Row {
    name: &'static str,
    size: usize,
    align: usize,
    fields: Vec<(&'static str, usize, usize)>,
}

/// Size of the type behind a pointer that is not read.
fn size_behind<T>(_: *const T) -> usize {
    size_of::<T>()
}

macro_rules! c_name {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $name:ident) => {
        stringify!($name)
    };
}

macro_rules! rows {
    ($($($path:ident)::+ $c:ident: $($field:ident $(as $name:ident)?),*;)*) => {
        fn rows() -> Vec<Row> {
            $({
                // Fails to compile when a field is not in the list.
                #[allow(dead_code)]
                fn all(value: $($path)::+) {
                    let $($path)::+ { $($field: _),* } = value;
                }
            })*
            vec![$({
                type This = $($path)::+;
                let place = std::mem::MaybeUninit::<This>::uninit();
                let at = place.as_ptr();
                Row {
                    name: stringify!($c),
                    size: size_of::<This>(),
                    align: align_of::<This>(),
                    fields: vec![$((
                        c_name!($field $($name)?),
                        std::mem::offset_of!(This, $field),
                        // SAFETY: an address within the place; nothing is read.
                        size_behind(unsafe { &raw const (*at).$field }),
                    )),*],
                }
            }),*]
        }
    };
}

rows! {
    BackendAbiInfo um_backend_abi_info: size, abi_major, abi_minor, dlpack_major, dlpack_minor,
        table_size, pointer_bits, endianness, reserved, device_type, sanitizers, flags, name,
        variant, version, target, compiler, cpu_features;
    ElfNote um_elf_note: name_size, description_size, kind, owner, info;
    DeviceIdentity um_device_identity: size, known, uuid, pci_domain, pci_bus, pci_device,
        pci_function, memory, name;
    BackendScore um_backend_score: size, score, device_count, device_capacity, device_stride,
        reserved, devices, reason;
    HostTable um_host_table: size, abi_major, abi_minor, host, log, error_new, alloc, free,
        parallel_for, thread_count, error_command;
    DeviceInfo um_device_info: size, synchronous, host_memory, dtypes_storage, dtypes_arithmetic,
        fused_max_instructions, fused_max_inputs, reserved, memory, name, flags,
        dtypes_accumulate, max_inputs, alignment, max_buffer, kernel_languages, identity;
    Command um_command: size, flags, plan, inputs, outputs, scalars, n_inputs, n_outputs,
        n_scalars, tensor_stride, workspace;
    BackendTable um_backend_table: size, abi_major, abi_minor, backend, name, device_type,
        reserved, device_count, device_info, device_open, device_close, buffer_alloc,
        buffer_free, buffer_host_pointer, copy_to_device, copy_to_host, stream_create,
        stream_destroy, stream_synchronize, event_create, event_record, event_wait_stream,
        event_wait_host, event_query, event_destroy, prepare, plan_release, plan_workspace,
        submit, interface as interface_;
    TensorDesc um_tensor_desc: size, ndim, dtype, layout;
    Tensor um_tensor: size, flags, dl, buffer, buffer_size, wait, wait_value;
    fused::Instruction um_instruction: family, op, a, b, c, dtype;
    fused::Program um_program: size, reduce, axes, instructions, constants, outputs,
        n_instructions, n_constants, n_outputs, n_inputs;
    fused::FusedInterface um_fused_interface: size, flags, prepare;
    fused::Anchor um_anchor: size, op, revision, position, attributes, n_inputs, n_scalars;
    fused::AnchoredInterface um_anchored_interface: size, flags, prepare;
    kernel::KernelSource um_kernel_source: size, n_template_arguments, language, source,
        source_bytes, entry, template_arguments, options;
    kernel::KernelArgument um_kernel_argument: size, kind, tensor, scalar, dtype, written;
    kernel::KernelLaunch um_kernel_launch: size, n_arguments, arguments, argument_stride,
        shared_bytes, grid, block;
    kernel::KernelInfo um_kernel_info: size, max_threads, thread_multiple, max_shared;
    kernel::KernelInterface um_kernel_interface: size, flags, compile, launch, release, info;
    memory::ForeignMemory um_foreign_memory: size, kind, flags, reserved, handle, offset, bytes,
        release, context, ready;
    memory::MemoryInterface um_memory_interface: size, imports, exports, flags,
        import as import_, export as export_, wait_foreign, native_stream, signal_foreign,
        retain_foreign, release_foreign;
    peer::PeerInterface um_peer_interface: size, flags, copy;
    replay::MemorySource um_memory_source: kind, slot;
    replay::RecordedCommand um_recorded_command: size, flags, command, sources, scalar_slots,
        workspace, workspace_offset;
    replay::RecordingRequest um_recording_request: size, flags, commands, n_commands, n_slots,
        n_scalars, reserved, arena_bytes;
    replay::SlotMemory um_slot_memory: buffer, data, bytes, offset;
    replay::ReplayBindings um_replay_bindings: size, flags, slots, scalars, n_slots, n_scalars,
        arena;
    replay::ReplayInterface um_replay_interface: size, flags, record, replay, update, release;
    statistics::MemoryStatistics um_memory_statistics: size, flags, active, peak, cache, total,
        free as free_;
    statistics::StatisticsInterface um_statistics_interface: size, flags, read, set_limit,
        get_limit, reset_peak, clear_cache;
    stream_memory::StreamMemoryInterface um_stream_memory_interface: size, flags, alloc,
        free as free_;
    timing::TimingInterface um_timing_interface: size, flags, mark, resolve, release, range_push,
        range_pop;
    upload::UploadPiece um_upload_piece: size, flags, handle, memory, bytes;
    upload::UploadInterface um_upload_interface: size, flags, lend, copy, give_back;
    collective::CollectiveId um_collective_id: size, length, bytes;
    collective::CollectiveCommand um_collective_command: size, kind, dtype, peer, count, input,
        input_offset, output, output_offset;
    collective::CollectiveInterface um_collective_interface: size, flags, make_id, open, split,
        status, place, run, abort as abort_, close;
    about::AboutInterface um_about_interface: size, flags, describe;
    extension::PlaceCode um_place: size, kind, device_type, device_index, stream_index, reserved;
    extension::TensorType um_tensor_type: size, ndim, dtype, reserved, shape;
    extension::View um_view: size, flags, data, shape, strides, elements, ndim, dtype;
    extension::EvalCall um_call: size, n_inputs, n_outputs, view_stride, inputs, outputs,
        languages, host_call;
    extension::KernelText um_kernel_text: size, n_template_arguments, language, source, entry,
        template_arguments, options, source_bytes;
    extension::KernelProperties um_kernel_properties: size, max_group, group_multiple, max_shared;
    extension::Binding um_binding: size, kind, index, dtype, scalar, constants, bytes;
    extension::Dispatch um_dispatch: size, n_bindings, bindings, binding_stride, shared_bytes,
        grid, group;
    extension::Primitive um_primitive: size, flags, name, version, n_outputs, attributes,
        attribute_bytes, context, infer, eval_cpu, eval_gpu, compose, vjp, jvp, vmap, equivalent,
        print, release;
    extension::Attribute um_attribute: size, kind, name, integer, real, integers, count, text,
        dtype, reserved;
    extension::ExtensionHost um_extension_host: size, major, minor, host, version, error_new,
        error_code, error_text, error_free, array_retain, array_release, array_type, array_place,
        array_eval, array_view, array_from_bytes, array_full, promote_types, issubdtype,
        broadcast_types, broadcast_arrays, operation, apply, parallel_for, thread_count, allocate,
        take, share, enqueue, kernel, kernel_properties, temporary, contiguous, launch, prelude,
        provide;
    extension::PythonApi um_python_api: size, major, minor, host, is_array, array_borrow,
        array_from_object, array_to_object, place_from_object, raise;
    dlpack::DLDevice DLDevice: device_type, device_id;
    dlpack::DLDataType DLDataType: code, bits, lanes;
    dlpack::DLTensor DLTensor: data, device, ndim, dtype, shape, strides, byte_offset;
    dlpack::DLPackVersion DLPackVersion: major, minor;
    dlpack::DLManagedTensor DLManagedTensor: dl_tensor, manager_ctx, deleter;
    dlpack::DLManagedTensorVersioned DLManagedTensorVersioned: version, manager_ctx, deleter,
        flags, dl_tensor;
    exchange::DLPackExchangeAPIHeader DLPackExchangeAPIHeader: version, prev_api;
    exchange::DLPackExchangeAPI DLPackExchangeAPI: header, managed_tensor_allocator,
        managed_tensor_from_py_object_no_sync, managed_tensor_to_py_object_no_sync,
        dltensor_from_py_object_no_sync, current_work_stream;
}

/// The structs above, and the attribute structs of the schema.
fn all_rows() -> Vec<Row> {
    let attributes = schema::ATTRIBUTES.iter().map(|row| {
        let fields = row.fields.iter().map(|f| (f.name, f.offset, f.bytes()));
        let fields = std::iter::once(("size", 0, 4)).chain(fields).collect();
        Row { name: row.c_name, size: row.size, align: row.align, fields }
    });
    rows().into_iter().chain(attributes).collect()
}

/// What Rust says.
pub fn rust() -> String {
    let mut out = String::new();
    for row in all_rows() {
        writeln!(out, "{} size {} align {}", row.name, row.size, row.align).unwrap();
        for (field, offset, size) in row.fields {
            writeln!(out, "  {field} {offset} {size}").unwrap();
        }
    }
    out
}

/// A program that prints what C says.
pub fn c() -> String {
    let mut out = String::from(
        "#include <stdio.h>
#include <ultramarine/extension.h>
#ifdef __cplusplus
#define UM_ALIGNOF alignof
#else
#define UM_ALIGNOF _Alignof
#endif
#define PUT(type, field) \\
  printf(\"  \" #field \" %u %u\\n\", (unsigned)offsetof(type, field), (unsigned)sizeof(((type *)0)->field))
int main(void) {\n",
    );
    for row in all_rows() {
        let name = row.name;
        writeln!(
            out,
            "  printf(\"{name} size %u align %u\\n\", (unsigned)sizeof({name}), \\
             (unsigned)UM_ALIGNOF({name}));"
        )
        .unwrap();
        for (field, ..) in row.fields {
            writeln!(out, "  PUT({name}, {field});").unwrap();
        }
    }
    out.push_str("  return 0;\n}\n");
    out
}
