//===- Sync.h - fences and synchronization objects --------------*- C++ -*-===//
//
// A fence is what a submission signals when it is done; a synchronization
// object of DRM holds one fence, or one for each point of a timeline. All of
// them share one lock and one condition variable.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_VIRTUALRADEON_SYNC_H
#define GRETA_VIRTUALRADEON_SYNC_H

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace greta::radeon {

class Fence {
public:
  explicit Fence(bool done = false) : done(done) {}
  /// Signaled when all of these are.
  explicit Fence(std::vector<std::shared_ptr<Fence>> parts)
      : done(false), parts(std::move(parts)) {}
  void signal();
  bool isSignaled() const;
  /// The time is CLOCK_MONOTONIC's, in nanoseconds; false when it has passed.
  bool wait(int64_t deadline) const;

  /// With the lock held.
  bool isDone() const;

private:
  bool done;
  std::vector<std::shared_ptr<Fence>> parts;
};
using FencePtr = std::shared_ptr<Fence>;

class SyncObject {
public:
  /// The fence of a point (0: of the object itself), or null: nobody has
  /// submitted it. A timeline gives the first point that is not below.
  FencePtr fence(uint64_t point) const;
  /// The same, with the lock held.
  FencePtr find(uint64_t point) const;
  void set(uint64_t point, FencePtr fence);
  void reset();
  /// The last point up to which all fences are signaled, or of all fences.
  uint64_t value(bool isSubmitted) const;

private:
  FencePtr single;
  std::map<uint64_t, FencePtr> points;
};
using SyncObjectPtr = std::shared_ptr<SyncObject>;

/// A point that wait() waits for.
struct SyncWait {
  SyncObjectPtr object;
  uint64_t point = 0;
};
struct SyncWaitOptions {
  bool all = false;       ///< for all of them; else for any
  bool submitted = false; ///< an object without a fence is waited for
  bool available = false; ///< the fences need only be there
};
/// Index of the first that was signaled, or a negative error number: -EINVAL
/// for an object without a fence, -ETIME.
int64_t wait(const std::vector<SyncWait> &what, SyncWaitOptions options,
             int64_t deadline);

} // namespace greta::radeon

#endif
