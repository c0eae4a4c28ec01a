// Descriptor.cpp: see Descriptor.h.
#include "comm/Descriptor.h"

#include <mutex>
#include <pthread.h>
#include <set>
#include <unistd.h>
#include <utility>

namespace greta::rt::comm {

struct Descriptor::All {
  static All &get() {
    static All &Made = *new All; // threads may outlive the library's end
    return Made;
  }
  All() {
    (void)pthread_atfork([] { get().Lock.lock(); }, [] { get().Lock.unlock(); },
                         [] {
                           for (Descriptor *D : get().Those)
                             if (D->Fd >= 0)
                               ::close(std::exchange(D->Fd, -1));
                           get().Lock.unlock();
                         });
  }
  std::mutex Lock;
  std::set<Descriptor *> Those;
};

Descriptor::Descriptor() : Descriptor([] { return -1; }) {}

Descriptor::Descriptor(const std::function<int()> &Open) {
  All &A = All::get();
  std::lock_guard<std::mutex> Guard(A.Lock);
  A.Those.insert(this);
  Fd = Open();
}

Descriptor::Descriptor(Descriptor &&Other) noexcept : Descriptor() {
  *this = std::move(Other);
}

Descriptor &Descriptor::operator=(Descriptor &&Other) noexcept {
  std::lock_guard<std::mutex> Guard(All::get().Lock);
  std::swap(Fd, Other.Fd);
  return *this;
}

Descriptor::~Descriptor() {
  close();
  All &A = All::get();
  std::lock_guard<std::mutex> Guard(A.Lock);
  A.Those.erase(this);
}

void Descriptor::close() {
  std::lock_guard<std::mutex> Guard(All::get().Lock);
  if (Fd >= 0)
    ::close(std::exchange(Fd, -1));
}

} // namespace greta::rt::comm
