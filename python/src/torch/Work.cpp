//===- Work.cpp - a collective of torch.distributed on its way ------------===//
//
// In: collectives that Distributed.cpp queued. Out: their ends, failures and
// futures (Distributed.h).
//
//===----------------------------------------------------------------------===//

#include "Copies.h"
#include "Distributed.h"
#include "Lending.h"

#include <ATen/Functions.h>
#include <c10/core/DeviceGuard.h>

using namespace greta;
using namespace greta::torch_device;
namespace torch_device = greta::torch_device;

//
// Operands
//

Span::Span(const at::Tensor &tensor)
    : buffer(device(tensor.device().index()).placeholder()), offset(0) {
  if (!tensor.numel())
    return;
  Place place = placeOf(tensor);
  buffer = place.block->buffer.get();
  offset = place.offset;
}

void Work::use(const at::Tensor &tensor) {
  TORCH_CHECK(tensor.device().type() == deviceType &&
                  tensor.layout() == at::kStrided,
              "the backend greta takes dense tensors on rdna, this one is ",
              tensor.layout(), " on ", tensor.device());
  if (index < 0)
    index = tensor.device().index();
  TORCH_CHECK(index == tensor.device().index(),
              "tensors of one collective are on rdna:", int(index), " and on ",
              tensor.device());
  Lending::moveAway(tensor); // a replay does not wait for collectives
  // A copy that a replay made in another stream may still be under way.
  if (tensor.storage().nbytes())
    placeOf(tensor).block->usedBy(currentStream(index));
  kept.push_back(tensor);
}

at::Tensor Work::given(const at::Tensor &tensor) {
  use(tensor);
  at::NoGradGuard guard;
  at::Tensor dense = tensor.detach().resolve_conj().resolve_neg().contiguous();
  kept.push_back(dense);
  return dense;
}

at::Tensor Work::taken(const at::Tensor &tensor) {
  use(tensor);
  outputs.push_back(tensor);
  if (tensor.is_contiguous() && !tensor.is_neg() && !tensor.is_conj())
    return tensor;
  at::Tensor dense = room(tensor.sizes(), tensor);
  copyLater(tensor, dense);
  return dense;
}

at::Tensor Work::room(at::IntArrayRef shape, const at::Tensor &like) {
  at::NoGradGuard guard;
  kept.push_back(at::empty(shape, like.options().requires_grad(false)));
  return kept.back();
}

void Work::copyLater(const at::Tensor &to, const at::Tensor &from) {
  copies.push_back({to, from});
}

void Work::transfer(const at::Tensor &tensor, int peer, bool receives) {
  if (!tensor.numel())
    return;
  Span span(tensor);
  transfers.push_back(
      {span.buffer, span.offset, tensor.nbytes(), uint32_t(peer), receives});
}

//
// Answers to c10d
//

bool Work::isCompleted() {
  std::lock_guard<std::mutex> guard(mutex_);
  return completed_ && (exception_ || end->wait(0));
}

bool Work::isSuccess() const {
  std::lock_guard<std::mutex> guard(mutex_);
  return completed_ && !exception_;
}

std::exception_ptr Work::exception() const {
  std::lock_guard<std::mutex> guard(mutex_);
  return exception_;
}

c10::intrusive_ptr<c10::ivalue::Future> Work::getFuture() {
  TORCH_CHECK(future, "collectives that are coalesced have a future when all "
                      "of them are known");
  return future;
}

// A rank that is lost, or late, ends a collective on every rank, so that
// waiting without a limit ends.
bool Work::wait(Milliseconds timeout) {
  Milliseconds most = timeout == kNoTimeout ? limit : timeout;
  {
    std::unique_lock<std::mutex> guard(mutex_);
    auto isDone = [&] { return completed_; };
    if (most.count() < 0)
      cv_.wait(guard, isDone);
    else if (!cv_.wait_for(guard, most, isDone))
      C10_THROW_ERROR(DistBackendError,
                      c10::str("a collective has not ended within ",
                               most.count(), " ms on rank ", rank_));
    if (exception_)
      std::rethrow_exception(exception_);
  }
  currentQueue(index).run([&](Stream &stream) { stream.wait(*end); });
  if (blocksHost)
    end->synchronize();
  return true;
}

//
// The watch
//

Watch::Watch(c10::DeviceIndex index)
    : index(index), behind(device(index).reserveStream()) {}

std::shared_ptr<Watch> Watch::start(c10::DeviceIndex index) {
  std::shared_ptr<Watch> made(new Watch(index));
  made->thread = std::thread([made] { made->run(); });
  return made;
}

Watch::~Watch() { device(index).releaseStream(behind); }

void Watch::close() {
  {
    std::lock_guard<std::mutex> guard(lock);
    isClosing = true;
  }
  changed.notify_all();
  if (isThisThread())
    thread.detach();
  else
    thread.join();
}

std::unique_ptr<Stream> Watch::takeStream() {
  std::lock_guard<std::mutex> guard(lock);
  if (streams.empty())
    return std::make_unique<Stream>(device(index).runtime().stream());
  auto stream = std::move(streams.back());
  streams.pop_back();
  return stream;
}

void Watch::add(c10::intrusive_ptr<Work> work) {
  // A future's callback runs in the thread, and may wait for what it begins.
  if (isThisThread()) {
    follow(*work);
    settled.push_back(std::move(work));
    return;
  }
  {
    std::lock_guard<std::mutex> guard(lock);
    begun.push_back(std::move(work));
  }
  changed.notify_all();
}

void Watch::run() {
  setCurrentDevice(index);
  exchangeStream(index, behind);
  for (;;) {
    c10::intrusive_ptr<Work> next;
    {
      std::unique_lock<std::mutex> guard(lock);
      if (settled.empty())
        changed.wait(guard, [&] { return isClosing || !begun.empty(); });
      if (!begun.empty()) {
        next = std::move(begun.front());
        begun.pop_front();
      } else if (settled.empty()) {
        return;
      }
    }
    if (next) {
      follow(*next);
      settled.push_back(std::move(next));
      continue;
    }
    Work &oldest = *settled.front();
    constexpr uint64_t look = 500; // microseconds
    bool isDone = true;
    try {
      isDone = !oldest.end || oldest.end->wait(look);
    } catch (const std::exception &) {
      // The stream in use tells what the device says.
    }
    if (isDone) {
      oldest.kept.clear();
      oldest.copies.clear();
      settled.pop_front();
    }
  }
}

void Watch::follow(Work &work) {
  std::exception_ptr failure;
  try {
    settle(work);
  } catch (const std::exception &error) {
    failure = std::make_exception_ptr(
        c10::DistBackendError({__func__, __FILE__, uint32_t(__LINE__)},
                              c10::str("greta: ", error.what())));
  }
  {
    std::lock_guard<std::mutex> guard(work.mutex_);
    if (failure)
      work.end.reset();
    work.exception_ = failure;
    work.completed_ = true;
  }
  work.cv_.notify_all();
  try {
    if (failure)
      work.future->setError(failure);
    else
      work.future->markCompleted(c10::IValue(work.outputs));
  } catch (const std::exception &error) {
    TORCH_WARN("a callback of a collective's future has failed: ",
               error.what());
  }
}

// If the device does not order streams and collectives, to record an event
// behind a collective waits until it has ended.
void Watch::settle(Work &work) {
  torch_device::Device &on = device(index);
  Event ended = on.runtime().event();
  work.stream->record(ended);
  work.stream->flush();
  on.queue(behind).run([&](Stream &stream) { stream.wait(ended); });
  {
    std::lock_guard<std::mutex> guard(lock);
    streams.push_back(std::move(work.stream));
  }
  for (const auto &[to, from] : work.copies)
    copyTensor(to, from, /*mayReturn=*/true);
  Event end = on.runtime().event();
  on.queue(behind).run([&](Stream &stream) {
    stream.record(end);
    stream.flush();
  });
  std::lock_guard<std::mutex> guard(work.mutex_);
  work.end = std::move(end);
}
