//===- Distributed.cpp - the backend greta of torch.distributed -----------===//
//
// In: c10d's collectives. Out: a Work whose operations are queued, and which
// the backend's watch follows (Distributed.h).
//
//===----------------------------------------------------------------------===//

#include "Distributed.h"

#include <ATen/Functions.h>
#include <c10/core/DeviceGuard.h>

using namespace greta;
using namespace greta::torch_device;
namespace torch_device = greta::torch_device;
using c10d::OpType;
using c10d::ReduceOp;

namespace {

const char *typeOf(const at::Tensor &tensor) {
  switch (tensor.scalar_type()) {
  case at::kFloat:
    return "f32";
  case at::kDouble:
    return "f64";
  case at::kHalf:
    return "f16";
  case at::kBFloat16:
    return "bf16";
  case at::kInt:
    return "i32";
  case at::kLong:
    return "i64";
  case at::kChar:
    return "i8";
  case at::kByte:
  case at::kBool:
    return "u8";
  default:
    TORCH_CHECK_NOT_IMPLEMENTED(
        false,
        "the backend greta reduces float16, bfloat16, float32, float64, int8, "
        "uint8, int32, int64 and bool, not ",
        tensor.scalar_type());
  }
}

// For torch a sum of bool is whether any is true, a product whether all are.
greta_comm_reduction reductionOf(const ReduceOp &op, const at::Tensor &tensor) {
  bool isBool = tensor.scalar_type() == at::kBool;
  switch (op) {
  case ReduceOp::SUM:
    return isBool ? GRETA_COMM_MAX : GRETA_COMM_SUM;
  case ReduceOp::AVG:
    TORCH_CHECK_TYPE(!isBool, "there are no averages of bool");
    return GRETA_COMM_AVERAGE;
  case ReduceOp::MAX:
    return GRETA_COMM_MAX;
  case ReduceOp::MIN:
    return GRETA_COMM_MIN;
  case ReduceOp::PRODUCT:
    return isBool ? GRETA_COMM_MIN : GRETA_COMM_PRODUCT;
  default:
    TORCH_CHECK_NOT_IMPLEMENTED(
        false, "the backend greta reduces by SUM, AVG, MAX, MIN and PRODUCT, "
               "not by bits nor by PREMUL_SUM");
  }
}

const at::Tensor &only(const std::vector<at::Tensor> &tensors) {
  TORCH_CHECK(tensors.size() == 1, "a rank gives one tensor to a collective, ",
              tensors.size(), " are given");
  return tensors[0];
}
template <typename T> const T &only(const std::vector<T> &lists) {
  TORCH_CHECK(lists.size() == 1,
              "a rank gives one list of tensors to a "
              "collective, ",
              lists.size(), " are given");
  return lists[0];
}

void checkAlike(const at::Tensor &a, const at::Tensor &b, int64_t times = 1) {
  TORCH_CHECK(a.scalar_type() == b.scalar_type() &&
                  a.numel() == b.numel() * times,
              "tensors of a collective do not fit: ", a.numel(),
              " elements of ", a.scalar_type(), " and ", times, " times ",
              b.numel(), " of ", b.scalar_type());
}

void checkCount(const std::vector<at::Tensor> &tensors, size_t count) {
  TORCH_CHECK(tensors.size() == count, "a list of ", count,
              " tensors is wanted, there are ", tensors.size());
}

/// Returns the number of elements for each rank: of the rows that the caller
/// gives, else the same for all.
std::vector<int64_t> splits(const at::Tensor &tensor,
                            const std::vector<int64_t> &rows, int size) {
  int64_t all = tensor.dim() ? tensor.size(0) : 1;
  if (rows.empty()) {
    TORCH_CHECK(all % size == 0, all, " rows are no multiple of ", size,
                " ranks");
    return std::vector<int64_t>(size, tensor.numel() / size);
  }
  int64_t sum = 0;
  for (int64_t one : rows)
    sum += one;
  TORCH_CHECK(int(rows.size()) == size && sum == all, "splits of ", all,
              " rows for ", size, " ranks are ", rows.size(), " with a sum of ",
              sum);
  std::vector<int64_t> elements;
  for (int64_t one : rows)
    elements.push_back(all ? tensor.numel() / all * one : 0);
  return elements;
}

} // namespace

//
// One call's way
//

Collectives::Handle
Collectives::perform(OpType type, Milliseconds limit,
                     const std::function<void(Work &)> &add) {
  WorkPtr together;
  {
    std::unique_lock<std::mutex> guard = locked();
    together = coalesced;
  }
  if (!together) {
    auto work = c10::make_intrusive<Work>(rank_, type, limit);
    add(*work);
    return issue(std::move(work));
  }
  try {
    add(*together);
  } catch (...) {
    std::unique_lock<std::mutex> guard = locked();
    coalesced.reset(); // torch does not end a failed one
    throw;
  }
  return together;
}

void Collectives::startCoalescing() {
  std::unique_lock<std::mutex> guard = locked();
  TORCH_CHECK(!coalesced, "calls are being coalesced already");
  coalesced =
      c10::make_intrusive<Work>(rank_, OpType::COALESCED, c10d::kUnsetTimeout);
}

Collectives::Handle Collectives::endCoalescing() {
  WorkPtr work;
  {
    std::unique_lock<std::mutex> guard = locked();
    TORCH_CHECK(coalesced, "no calls are being coalesced");
    work = std::move(coalesced);
  }
  return issue(std::move(work));
}

Collectives::Handle Collectives::issue(WorkPtr work) {
  std::unique_lock<std::mutex> guard = locked();
  if (work->index < 0)
    work->index = watch ? watch->index : currentDevice();
  connect(work->index);
  torch_device::Device &on = device(work->index);
  work->future = c10::make_intrusive<c10::ivalue::Future>(
      c10::ListType::create(c10::TensorType::get()),
      std::vector<c10::Device>{c10::Device(deviceType, work->index)});
  work->sequence = ++issued;
  work->stream = watch->takeStream();
  try {
    Event before = on.runtime().event();
    currentQueue(work->index).run([&](Stream &stream) {
      stream.record(before);
      stream.flush();
    });
    work->stream->wait(before);
    for (const Work::Operation &operation : work->operations)
      operation(comm->get(), work->stream->get());
    if (!work->transfers.empty())
      comm->exchange(*work->stream, work->transfers);
  } catch (const Error &error) {
    C10_THROW_ERROR(DistBackendError, c10::str("greta: ", error.what()));
  }
  // The watch cannot close before it has the work. It is added with the lock,
  // but without it in the watch's own thread, where a callback may queue more.
  std::shared_ptr<Watch> follower = watch;
  if (follower->isThisThread())
    guard.unlock();
  follower->add(work);
  return work;
}

//
// Parts of a work
//

void Collectives::addAllReduce(Work &work, const at::Tensor &to,
                               const at::Tensor &from, const ReduceOp &op) {
  auto reduction = reductionOf(op, from);
  const char *type = typeOf(from);
  Span in(work.given(from)), out(to);
  size_t count = from.numel();
  work.operations.push_back([=](greta_comm *comm, greta_stream *stream) {
    check(greta_comm_all_reduce(comm, stream, out.buffer, out.offset, in.buffer,
                                in.offset, count, type, reduction));
  });
}

void Collectives::addReduceScatter(Work &work, const at::Tensor &to,
                                   const at::Tensor &from, const ReduceOp &op) {
  checkAlike(from, to, size_);
  auto reduction = reductionOf(op, from);
  const char *type = typeOf(from);
  Span in(work.given(from)), out(to);
  size_t count = to.numel();
  work.operations.push_back([=](greta_comm *comm, greta_stream *stream) {
    check(greta_comm_reduce_scatter(comm, stream, out.buffer, out.offset,
                                    in.buffer, in.offset, count, type,
                                    reduction));
  });
}

void Collectives::addAllGather(Work &work, const at::Tensor &to,
                               const at::Tensor &from) {
  checkAlike(to, from, size_);
  Span in(work.given(from)), out(to);
  size_t bytes = from.nbytes();
  work.operations.push_back([=](greta_comm *comm, greta_stream *stream) {
    check(greta_comm_all_gather(comm, stream, out.buffer, out.offset, in.buffer,
                                in.offset, bytes));
  });
}

void Collectives::addCopy(Work &work, const at::Tensor &to,
                          const at::Tensor &from) {
  checkAlike(to, from);
  Span in(from), out(to);
  size_t bytes = from.nbytes();
  work.operations.push_back([=](greta_comm *, greta_stream *stream) {
    if (bytes)
      check(greta_buffer_copy(stream, out.buffer, out.offset, in.buffer,
                              in.offset, bytes));
  });
}

//
// Collectives
//

Collectives::Handle Collectives::broadcast(Tensors &tensors,
                                           const c10d::BroadcastOptions &o) {
  return perform(OpType::BROADCAST, o.timeout, [&](Work &work) {
    const at::Tensor &tensor = only(tensors);
    Span in(work.given(tensor)), out(work.taken(tensor));
    size_t bytes = tensor.nbytes();
    auto root = uint32_t(o.rootRank);
    work.operations.push_back([=](greta_comm *comm, greta_stream *stream) {
      check(greta_comm_broadcast(comm, stream, out.buffer, out.offset,
                                 in.buffer, in.offset, bytes, root));
    });
  });
}

Collectives::Handle Collectives::allreduce(Tensors &tensors,
                                           const c10d::AllreduceOptions &o) {
  return perform(OpType::ALLREDUCE, o.timeout, [&](Work &work) {
    const at::Tensor &tensor = only(tensors);
    addAllReduce(work, work.taken(tensor), tensor, o.reduceOp);
  });
}

Collectives::Handle
Collectives::allreduce_coalesced(Tensors &tensors,
                                 const c10d::AllreduceCoalescedOptions &o) {
  return perform(OpType::ALLREDUCE_COALESCED, o.timeout, [&](Work &work) {
    for (const at::Tensor &tensor : tensors)
      addAllReduce(work, work.taken(tensor), tensor, o.reduceOp);
  });
}

Collectives::Handle Collectives::reduce(Tensors &tensors,
                                        const c10d::ReduceOptions &o) {
  return perform(OpType::REDUCE, o.timeout, [&](Work &work) {
    const at::Tensor &tensor = only(tensors);
    bool isRoot = rank_ == o.rootRank;
    work.use(tensor);
    addAllReduce(
        work, isRoot ? work.taken(tensor) : work.room(tensor.sizes(), tensor),
        tensor, o.reduceOp);
  });
}

Collectives::Handle
Collectives::_allgather_base(at::Tensor &to, at::Tensor &from,
                             const c10d::AllgatherOptions &o) {
  return perform(OpType::_ALLGATHER_BASE, o.timeout,
                 [&](Work &work) { addAllGather(work, work.taken(to), from); });
}

Collectives::Handle
Collectives::allgather_into_tensor_coalesced(Tensors &to, Tensors &from,
                                             const c10d::AllgatherOptions &o) {
  return perform(OpType::COALESCED, o.timeout, [&](Work &work) {
    checkCount(to, from.size());
    for (size_t i = 0; i < to.size(); ++i)
      addAllGather(work, work.taken(to[i]), from[i]);
  });
}

Collectives::Handle Collectives::allgather(std::vector<Tensors> &to,
                                           Tensors &from,
                                           const c10d::AllgatherOptions &o) {
  return perform(OpType::ALLGATHER, o.timeout, [&](Work &work) {
    const at::Tensor &tensor = only(from);
    const Tensors &results = only(to);
    checkCount(results, size_);
    work.use(tensor);
    at::Tensor all = work.room({size_, tensor.numel()}, tensor);
    addAllGather(work, all, tensor);
    for (int rank = 0; rank < size_; ++rank) {
      checkAlike(results[rank], tensor);
      work.use(results[rank]);
      work.outputs.push_back(results[rank]);
      work.copyLater(results[rank], all[rank].view(results[rank].sizes()));
    }
  });
}

Collectives::Handle Collectives::gather(std::vector<Tensors> &to, Tensors &from,
                                        const c10d::GatherOptions &o) {
  return perform(OpType::GATHER, o.timeout, [&](Work &work) {
    at::Tensor tensor = work.given(only(from));
    if (rank_ != o.rootRank)
      return work.transfer(tensor, int(o.rootRank), /*receives=*/false);
    const Tensors &results = only(to);
    checkCount(results, size_);
    for (int rank = 0; rank < size_; ++rank) {
      checkAlike(results[rank], tensor);
      at::Tensor result = work.taken(results[rank]);
      if (rank == rank_)
        addCopy(work, result, tensor);
      else
        work.transfer(result, rank, /*receives=*/true);
    }
  });
}

Collectives::Handle Collectives::scatter(Tensors &to,
                                         std::vector<Tensors> &from,
                                         const c10d::ScatterOptions &o) {
  return perform(OpType::SCATTER, o.timeout, [&](Work &work) {
    at::Tensor result = work.taken(only(to));
    if (rank_ != o.rootRank)
      return work.transfer(result, int(o.rootRank), /*receives=*/true);
    const Tensors &parts = only(from);
    checkCount(parts, size_);
    for (int rank = 0; rank < size_; ++rank) {
      checkAlike(parts[rank], result);
      at::Tensor part = work.given(parts[rank]);
      if (rank == rank_)
        addCopy(work, result, part);
      else
        work.transfer(part, rank, /*receives=*/false);
    }
  });
}

Collectives::Handle
Collectives::_reduce_scatter_base(at::Tensor &to, at::Tensor &from,
                                  const c10d::ReduceScatterOptions &o) {
  return perform(OpType::_REDUCE_SCATTER_BASE, o.timeout, [&](Work &work) {
    addReduceScatter(work, work.taken(to), from, o.reduceOp);
  });
}

Collectives::Handle Collectives::reduce_scatter_tensor_coalesced(
    Tensors &to, Tensors &from, const c10d::ReduceScatterOptions &o) {
  return perform(OpType::COALESCED, o.timeout, [&](Work &work) {
    checkCount(to, from.size());
    for (size_t i = 0; i < to.size(); ++i)
      addReduceScatter(work, work.taken(to[i]), from[i], o.reduceOp);
  });
}

Collectives::Handle
Collectives::reduce_scatter(Tensors &to, std::vector<Tensors> &from,
                            const c10d::ReduceScatterOptions &o) {
  return perform(OpType::REDUCE_SCATTER, o.timeout, [&](Work &work) {
    const Tensors &parts = only(from);
    checkCount(parts, size_);
    at::Tensor result = work.taken(only(to));
    at::Tensor all = work.room({size_, result.numel()}, result);
    at::NoGradGuard guard;
    for (int rank = 0; rank < size_; ++rank) {
      checkAlike(parts[rank], result);
      work.use(parts[rank]);
      all[rank].copy_(parts[rank].reshape({-1}));
    }
    addReduceScatter(work, result, all, o.reduceOp);
  });
}

Collectives::Handle Collectives::alltoall_base(at::Tensor &to, at::Tensor &from,
                                               std::vector<int64_t> &toRows,
                                               std::vector<int64_t> &fromRows,
                                               const c10d::AllToAllOptions &o) {
  return perform(OpType::ALLTOALL_BASE, o.timeout, [&](Work &work) {
    TORCH_CHECK(to.scalar_type() == from.scalar_type(), "results are of ",
                to.scalar_type(), ", what is sent of ", from.scalar_type());
    std::vector<int64_t> gets = splits(to, toRows, size_),
                         gives = splits(from, fromRows, size_);
    at::Tensor given = work.given(from), taken = work.taken(to);
    if (toRows.empty() && fromRows.empty()) {
      checkAlike(to, from);
      Span in(given), out(taken);
      size_t bytes = from.nbytes() / size_;
      work.operations.push_back([=](greta_comm *comm, greta_stream *stream) {
        check(greta_comm_all_to_all(comm, stream, out.buffer, out.offset,
                                    in.buffer, in.offset, bytes));
      });
      return;
    }
    at::Tensor in = given.view({-1}), out = taken.view({-1});
    int64_t first = 0, at = 0;
    for (int rank = 0; rank < size_; ++rank) {
      addExchange(work, out.narrow(0, at, gets[rank]),
                  in.narrow(0, first, gives[rank]), rank);
      first += gives[rank];
      at += gets[rank];
    }
  });
}

Collectives::Handle Collectives::alltoall(Tensors &to, Tensors &from,
                                          const c10d::AllToAllOptions &o) {
  return perform(OpType::ALLTOALL, o.timeout, [&](Work &work) {
    checkCount(to, size_);
    checkCount(from, size_);
    for (int rank = 0; rank < size_; ++rank) {
      at::Tensor part = work.given(from[rank]);
      addExchange(work, work.taken(to[rank]), part, rank);
    }
  });
}

void Collectives::addExchange(Work &work, const at::Tensor &to,
                              const at::Tensor &from, int peer) {
  if (peer == rank_)
    return addCopy(work, to, from);
  work.transfer(from, peer, /*receives=*/false);
  work.transfer(to, peer, /*receives=*/true);
}

// Messages between two ranks keep their order, whatever their tags.
Collectives::Handle Collectives::passOn(Tensors &tensors, int peer,
                                        bool receives) {
  return perform(receives ? OpType::RECV : OpType::SEND, c10d::kUnsetTimeout,
                 [&](Work &work) {
                   const at::Tensor &tensor = only(tensors);
                   work.transfer(receives ? work.taken(tensor)
                                          : work.given(tensor),
                                 peer, receives);
                 });
}

Collectives::Handle Collectives::send(Tensors &tensors, int peer, int) {
  return passOn(tensors, peer, /*receives=*/false);
}

Collectives::Handle Collectives::recv(Tensors &tensors, int peer, int) {
  return passOn(tensors, peer, /*receives=*/true);
}

Collectives::Handle Collectives::barrier(const c10d::BarrierOptions &o) {
  c10::DeviceIndex index = currentDevice();
  {
    std::unique_lock<std::mutex> guard = locked();
    if (watch)
      index = watch->index;
    else if (o.device && o.device->type() == deviceType &&
             o.device->has_index())
      index = o.device->index();
    else if (!o.device_ids.empty())
      index = c10::DeviceIndex(o.device_ids[0]);
  }
  at::Tensor none = at::zeros(
      {1}, at::TensorOptions(at::kInt).device(c10::Device(deviceType, index)));
  return perform(OpType::BARRIER, o.timeout, [&](Work &work) {
    work.blocksHost = true;
    addAllReduce(work, work.taken(none), none, ReduceOp(ReduceOp::MAX));
  });
}
