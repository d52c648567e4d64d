/* Timeline events: OpenCL's events have no values, so each value that was recorded has one of its own, a marker
 * behind the stream's earlier work. A value may be waited for before it is recorded: streams then wait for a user
 * event, which the marker completes, and the host for a condition. */

#include <stdlib.h>

#include "ocl.h"

struct mark {
  uint64_t value;
  cl_event event;
  struct mark *next;
};

struct timeline {
  pthread_mutex_t lock;
  pthread_cond_t recorded;
  uint64_t reached;
  struct mark *marks;   /* recorded, not known to be done */
  struct mark *waiters; /* user events of streams that wait for values not yet recorded */
};

um_status event_create(void *device, void **event, um_error **error) {
  (void)device;
  if (forked()) return fail_forked(error);
  struct timeline *line = calloc(1, sizeof *line);
  if (!line) return fail(error, UM_OUT_OF_MEMORY, "no memory for an event");
  pthread_mutex_init(&line->lock, NULL);
  pthread_cond_init(&line->recorded, NULL);
  *event = line;
  return UM_OK;
}

static void forget(struct mark *list) {
  while (list) {
    struct mark *next = list->next;
    clReleaseEvent(list->event);
    free(list);
    list = next;
  }
}

void event_destroy(void *device, void *event) {
  (void)device;
  struct timeline *line = event;
  if (!line || forked()) return;
  forget(line->marks);
  forget(line->waiters);
  pthread_cond_destroy(&line->recorded);
  pthread_mutex_destroy(&line->lock);
  free(line);
}

/* Takes marks that are done off the list. The lock is held. */
static void prune(struct timeline *line) {
  for (struct mark **at = &line->marks; *at;) {
    struct mark *mark = *at;
    cl_int status = CL_QUEUED;
    clGetEventInfo(mark->event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL);
    if (status != CL_COMPLETE) {
      at = &mark->next;
      continue;
    }
    if (mark->value > line->reached) line->reached = mark->value;
    *at = mark->next;
    clReleaseEvent(mark->event);
    free(mark);
  }
}

/* The mark of the smallest value that is not below `value`. The lock is held. */
static struct mark *find(struct timeline *line, uint64_t value) {
  struct mark *best = NULL;
  for (struct mark *mark = line->marks; mark; mark = mark->next) {
    if (mark->value >= value && (!best || mark->value < best->value)) best = mark;
  }
  return best;
}

static void CL_CALLBACK complete(cl_event mark, cl_int status, void *waiter) {
  (void)mark;
  clSetUserEventStatus(waiter, status < 0 ? status : CL_COMPLETE);
  clReleaseEvent(waiter);
}

um_status event_record(void *device, void *stream, void *event, uint64_t value, um_error **error) {
  struct timeline *line = event;
  (void)device;
  if (forked()) return fail_forked(error);
  struct mark *mark = calloc(1, sizeof *mark);
  if (!mark) return fail(error, UM_OUT_OF_MEMORY, "no memory for an event");
  cl_int code = clEnqueueMarkerWithWaitList(stream, 0, NULL, &mark->event);
  if (code == CL_SUCCESS) code = clFlush(stream);
  if (code != CL_SUCCESS) {
    if (mark->event) clReleaseEvent(mark->event);
    free(mark);
    return fail_cl(error, "clEnqueueMarkerWithWaitList", code);
  }
  mark->value = value;
  struct mark *ready = NULL;
  pthread_mutex_lock(&line->lock);
  prune(line);
  mark->next = line->marks;
  line->marks = mark;
  for (struct mark **at = &line->waiters; *at;) {
    struct mark *waiter = *at;
    if (waiter->value > value) {
      at = &waiter->next;
      continue;
    }
    *at = waiter->next;
    waiter->next = ready;
    ready = waiter;
  }
  cl_event done = mark->event;
  clRetainEvent(done);
  pthread_cond_broadcast(&line->recorded);
  pthread_mutex_unlock(&line->lock);
  /* Without the lock: a callback may run at once. */
  while (ready) {
    struct mark *next = ready->next;
    if (clSetEventCallback(done, CL_COMPLETE, complete, ready->event) != CL_SUCCESS) {
      clWaitForEvents(1, &done);
      complete(done, CL_COMPLETE, ready->event);
    }
    free(ready);
    ready = next;
  }
  clReleaseEvent(done);
  return UM_OK;
}

um_status event_wait_stream(void *handle, void *stream, void *event, uint64_t value, um_error **error) {
  struct device *device = handle;
  struct timeline *line = event;
  if (forked()) return fail_forked(error);
  cl_int code = CL_SUCCESS;
  cl_event wait = NULL;
  pthread_mutex_lock(&line->lock);
  prune(line);
  if (line->reached < value) {
    struct mark *mark = find(line, value);
    if (mark) {
      wait = mark->event;
      clRetainEvent(wait);
    } else {
      struct mark *waiter = calloc(1, sizeof *waiter);
      wait = waiter ? clCreateUserEvent(device->context, &code) : NULL;
      if (wait) {
        clRetainEvent(wait); /* one for the list, one for here */
        *waiter = (struct mark){value, wait, line->waiters};
        line->waiters = waiter;
      } else {
        free(waiter);
        if (code == CL_SUCCESS) code = CL_OUT_OF_HOST_MEMORY;
      }
    }
  }
  pthread_mutex_unlock(&line->lock);
  if (wait) {
    code = clEnqueueBarrierWithWaitList(stream, 1, &wait, NULL);
    clReleaseEvent(wait);
  }
  return code == CL_SUCCESS ? UM_OK : fail_cl(error, "clEnqueueBarrierWithWaitList", code);
}

um_status event_wait_host(void *device, void *event, uint64_t value, um_error **error) {
  struct timeline *line = event;
  (void)device;
  if (forked()) return fail_forked(error);
  cl_event wait = NULL;
  pthread_mutex_lock(&line->lock);
  prune(line);
  while (line->reached < value) {
    struct mark *mark = find(line, value);
    if (mark) {
      wait = mark->event;
      clRetainEvent(wait);
      break;
    }
    pthread_cond_wait(&line->recorded, &line->lock);
    prune(line);
  }
  pthread_mutex_unlock(&line->lock);
  if (!wait) return UM_OK;
  cl_int code = clWaitForEvents(1, &wait);
  clReleaseEvent(wait);
  if (code != CL_SUCCESS) return fail_cl(error, "clWaitForEvents", code);
  /* Marks of a queue complete in order, so that `query` says at least this from now on. */
  pthread_mutex_lock(&line->lock);
  prune(line);
  pthread_mutex_unlock(&line->lock);
  return UM_OK;
}

uint64_t event_query(void *device, void *event) {
  struct timeline *line = event;
  (void)device;
  if (!line || forked()) return 0;
  pthread_mutex_lock(&line->lock);
  prune(line);
  uint64_t reached = line->reached;
  pthread_mutex_unlock(&line->lock);
  return reached;
}

/* ---- ultramarine.timing/1: a slot is the event of a marker behind the stream's earlier work, whose end the queue notes. */

static um_status take_time(void *handle, void *stream, void **slot, um_error **error) {
  struct device *device = handle;
  if (forked()) return fail_forked(error);
  cl_command_queue queue = stream ? stream : device->copies;
  cl_command_queue_properties properties = 0;
  cl_event event = NULL;
  clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, sizeof properties, &properties, NULL);
  if (!(properties & CL_QUEUE_PROFILING_ENABLE)) return fail(error, UM_UNSUPPORTED, "the queue notes no times");
  cl_int code = clEnqueueMarkerWithWaitList(queue, 0, NULL, &event);
  if (code != CL_SUCCESS) return fail_cl(error, "clEnqueueMarkerWithWaitList", code);
  code = clFlush(queue);
  if (code != CL_SUCCESS) {
    clReleaseEvent(event);
    return fail_cl(error, "clFlush", code);
  }
  *slot = event;
  return UM_OK;
}

static um_status resolve_time(void *device, void *slot, uint64_t *nanoseconds, uint32_t *ready, um_error **error) {
  cl_int status = CL_QUEUED;
  cl_ulong end = 0;
  (void)device;
  if (forked()) return fail_forked(error);
  cl_int code = clGetEventInfo(slot, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL);
  if (code != CL_SUCCESS) return fail_cl(error, "clGetEventInfo", code);
  if (status < 0) return fail_cl(error, "a command before the mark", status);
  *ready = status == CL_COMPLETE;
  if (!*ready) return UM_OK;
  code = clGetEventProfilingInfo(slot, CL_PROFILING_COMMAND_END, sizeof end, &end, NULL);
  if (code != CL_SUCCESS) return fail_cl(error, "clGetEventProfilingInfo", code);
  *nanoseconds = end;
  return UM_OK;
}

static void release_time(void *device, void *slot) {
  (void)device;
  if (slot && !forked()) clReleaseEvent(slot);
}

const um_timing_interface timing_interface = {
    .size = sizeof timing_interface, .mark = take_time, .resolve = resolve_time, .release = release_time};
