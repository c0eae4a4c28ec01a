//===- Dispatch.h - calls that are launched again without Python ----------===//
#ifndef GRETA_PYTHON_TORCH_DISPATCH_H
#define GRETA_PYTHON_TORCH_DISPATCH_H

#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace greta::torch_device {

/// Returns, by operator, how many kinds of calls have a plan, and how often
/// plans ran.
std::map<std::string, std::pair<int64_t, int64_t>> callPlans();
void forgetCallPlans();

} // namespace greta::torch_device

#endif
