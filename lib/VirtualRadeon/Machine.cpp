//===- Machine.cpp - the card: its chip, its clock and its thread ---------===//
//
// Submissions of all queues are worked through one after another, each when the
// fences that it waits for are signaled. The kernel that is played here takes a
// wait for submitted fences only, so there is always one that can go on.
//
//===----------------------------------------------------------------------===//
#include "CommandProcessor.h"
#include "Radeon.h"
#include "greta/Sim/EstimateJson.h"
#include "llvm/Support/raw_ostream.h"
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

using namespace greta::radeon;
using namespace llvm;

void greta::radeon::say(const Twine &text) {
  std::string line = ("virtual Radeon: " + text + "\n").str();
  ssize_t written = write(STDERR_FILENO, line.data(), line.size());
  (void)written;
}

/// Every buffer is an open file, and 1024 of them are few.
static void raiseFileLimit() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur == limit.rlim_max)
    return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

Machine *Machine::get() {
  static Machine *machine = []() -> Machine * {
    const char *name = secure_getenv("GRETA_VIRTUAL_RADEON");
    if (!name || !*name)
      return nullptr;
    auto refuse = [](const Twine &why) {
      say(why);
      _exit(2);
      return nullptr;
    };
    const Chip *chip = findChip(name);
    if (!chip) {
      std::string names;
      for (const Chip &c : chips())
        names += std::string(names.empty() ? "" : " ") + c.name;
      return refuse(Twine("GRETA_VIRTUAL_RADEON: no chip '") + name +
                    "'; there are " + names);
    }
    unsigned checks = sim::CheckAll;
    if (const char *text = secure_getenv("GRETA_SIM_CHECKS")) {
      auto parsed = sim::parseChecks(text);
      if (!parsed)
        return refuse("GRETA_SIM_CHECKS: " + toString(parsed.takeError()));
      checks = *parsed;
    }
    // Workgroups and what they may use of arguments are not known here.
    checks &= ~unsigned(sim::CheckPrograms);
    auto device = sim::Device::create(chip->gfx);
    if (!device)
      return refuse(toString(device.takeError()));
    raiseFileLimit();
    // It lives as long as the process: its thread may work until the end.
    auto *m = new Machine(*chip, std::move(*device));
    m->chosenChecks = checks;
    m->traced = secure_getenv("GRETA_VIRTUAL_RADEON_TRACE");
    m->estimateOnly = secure_getenv("GRETA_VIRTUAL_RADEON_ESTIMATE_ONLY");
    if (const char *path = secure_getenv("GRETA_VIRTUAL_RADEON_RECORD")) {
      m->recordFile =
          ::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
      if (m->recordFile < 0)
        return refuse(Twine("GRETA_VIRTUAL_RADEON_RECORD: ") + path + ": " +
                      std::strerror(errno));
    }
    return m;
  }();
  return machine;
}

/// A program that ends without waiting takes LLVM's state down, with which the
/// card's thread decodes: what was submitted is finished before, if it can be.
/// A child of fork() has no such thread.
static void finishAtExit() {
  static const pid_t owner = getpid();
  std::atexit([] {
    constexpr auto Patience = std::chrono::seconds(60);
    auto deadline = std::chrono::steady_clock::now() + Patience;
    if (getpid() == owner)
      Machine::get()->waitIdle(deadline.time_since_epoch().count());
  });
}

Machine::Machine(const Chip &chip, std::unique_ptr<sim::Device> device)
    : card(chip), simulator(std::move(device)) {}

uint64_t Machine::gttBytes() const {
  uint64_t host = uint64_t(sysconf(_SC_PHYS_PAGES)) * PageBytes;
  return host / 2 / PageBytes * PageBytes;
}

void Machine::record(const sim::KernelInfo &kernel,
                     const sim::LaunchConfig &config) {
  if (recordFile < 0)
    return;
  std::string line;
  raw_string_ostream stream(line);
  json::OStream out(stream);
  out.object([&] {
    out.attribute("kernel", kernel.name);
    auto extents = [&](const char *name, const sim::Dim3 &d) {
      out.attribute(name, json::Array{d.x, d.y, d.z});
    };
    extents("grid", config.grid);
    extents("block", config.block);
    out.attribute("wave_size", kernel.waveSize);
    out.attribute("vgprs", kernel.vgprs);
    out.attribute("lds_bytes", kernel.ldsBytes);
    out.attribute("scratch_bytes", kernel.scratchBytes);
    sim::writeEstimate(out, *config.estimate);
  });
  stream << "\n";
  // One write, so that lines of several processes stay whole.
  ssize_t written = ::write(recordFile, line.data(), line.size());
  (void)written;
}

void Machine::submit(Submission s) {
  std::lock_guard<std::mutex> locked(lock);
  last = s.done;
  queue.push_back(std::move(s));
  if (!started) {
    started = true;
    finishAtExit();
    std::thread([this] { work(); }).detach();
  }
  arrived.notify_one();
}

bool Machine::waitIdle(int64_t deadline) {
  FencePtr fence;
  {
    std::lock_guard<std::mutex> locked(lock);
    fence = last;
  }
  return !fence || fence->wait(deadline);
}

void Machine::work() {
  while (true) {
    Submission s;
    {
      std::unique_lock<std::mutex> locked(lock);
      arrived.wait(locked, [&] { return !queue.empty(); });
      s = std::move(queue.front());
      queue.pop_front();
    }
    for (const FencePtr &fence : s.waits)
      fence->wait(INT64_MAX);
    for (const IndirectBuffer &buffer : s.buffers) {
      if (s.context->lost)
        break;
      if (Error e = s.processor->run(buffer.address, buffer.dwords)) {
        say(toString(std::move(e)));
        s.context->lost = true;
      }
    }
    if (s.fenceBuffer && !s.context->lost) {
      ssize_t written = pwrite(s.fenceBuffer->file, &s.number, sizeof(s.number),
                               off_t(s.fenceOffset));
      (void)written;
    }
    s.done->signal();
  }
}
