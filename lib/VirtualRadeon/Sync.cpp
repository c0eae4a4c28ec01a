//===- Sync.cpp - fences and synchronization objects ----------------------===//
#include "Sync.h"
#include <cerrno>
#include <chrono>

using namespace greta::radeon;

static std::mutex lock;
static std::condition_variable changed;

using Locked = std::unique_lock<std::mutex>;

/// Waits for a change; false when the deadline has passed.
static bool waitForChange(Locked &locked, int64_t deadline) {
  using namespace std::chrono;
  auto now = steady_clock::now();
  if (deadline <= now.time_since_epoch().count())
    return false;
  // No deadline in sight: durations beyond some years overflow.
  auto latest = now + hours(24);
  if (deadline < latest.time_since_epoch().count())
    latest = steady_clock::time_point(nanoseconds(deadline));
  changed.wait_until(locked, latest);
  return true;
}

void Fence::signal() {
  Locked locked(lock);
  done = true;
  changed.notify_all();
}
bool Fence::isDone() const {
  if (done || parts.empty())
    return done;
  for (const FencePtr &part : parts)
    if (!part->isDone())
      return false;
  return true;
}
bool Fence::isSignaled() const {
  Locked locked(lock);
  return isDone();
}
bool Fence::wait(int64_t deadline) const {
  Locked locked(lock);
  while (!isDone())
    if (!waitForChange(locked, deadline))
      return isDone();
  return true;
}

FencePtr SyncObject::find(uint64_t point) const {
  if (point == 0)
    return single ? single : points.empty() ? nullptr : points.rbegin()->second;
  auto at = points.lower_bound(point);
  return at == points.end() ? nullptr : at->second;
}
FencePtr SyncObject::fence(uint64_t point) const {
  Locked locked(lock);
  return find(point);
}
void SyncObject::set(uint64_t point, FencePtr fence) {
  Locked locked(lock);
  if (point == 0) {
    points.clear();
    single = std::move(fence);
  } else {
    points[point] = std::move(fence);
    // The last point that is reached stands for all before it.
    while (points.size() > 1 && points.begin()->second->isDone() &&
           std::next(points.begin())->second->isDone())
      points.erase(points.begin());
  }
  changed.notify_all();
}
void SyncObject::reset() {
  Locked locked(lock);
  single = nullptr;
  points.clear();
}
uint64_t SyncObject::value(bool isSubmitted) const {
  Locked locked(lock);
  uint64_t last = 0;
  for (const auto &[point, fence] : points) {
    if (!isSubmitted && !fence->isDone())
      break;
    last = point;
  }
  return last;
}

int64_t greta::radeon::wait(const std::vector<SyncWait> &what,
                            SyncWaitOptions options, int64_t deadline) {
  Locked locked(lock);
  while (true) {
    size_t ready = 0;
    int64_t first = -1;
    for (size_t k = 0; k < what.size(); ++k) {
      FencePtr fence = what[k].object->find(what[k].point);
      if (!fence && !options.submitted && !options.available)
        return -EINVAL;
      if (!fence || (!options.available && !fence->isDone()))
        continue;
      if (first < 0)
        first = int64_t(k);
      ++ready;
    }
    if (options.all ? ready == what.size() : ready != 0)
      return std::max<int64_t>(first, 0);
    if (!waitForChange(locked, deadline))
      return -ETIME;
  }
}
