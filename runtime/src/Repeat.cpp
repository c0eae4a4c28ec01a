// Repeat.cpp: see Repeat.h.
#include "Repeat.h"

#include <algorithm>
#include <utility>

namespace greta::rt {

void Step::tensors(const std::vector<TensorArg> &Tensors) {
  Words.push_back(Tensors.size());
  for (const TensorArg &T : Tensors) {
    Words.push_back(T.Buffer != nullptr);
    if (!T.Buffer) {
      Words.push_back(T.Value);
      continue;
    }
    object(*T.Buffer);
    Words.push_back(T.Offset);
    Words.push_back(T.HasShape);
    Words.push_back(T.Shape.Size);
    Words.insert(Words.end(), T.Shape.begin(), T.Shape.end());
  }
}

bool Step::isAlive() const {
  return std::none_of(Objects.begin(), Objects.end(),
                      [](const auto &Object) { return Object.expired(); });
}

void StepReader::tensors(std::vector<TensorArg> &Out,
                         std::vector<MemoryRef> &Memories) {
  Out.clear();
  for (uint64_t Left = word(); Left; --Left) {
    TensorArg T;
    if (!word()) {
      T.Value = word();
      Out.push_back(T);
      continue;
    }
    Memories.push_back(object<Memory>());
    T.Buffer = &Memories.back();
    T.Offset = word();
    T.HasShape = word() != 0;
    size_t Rank = word();
    T.Shape = {reinterpret_cast<const int64_t *>(&S.Words[Word]), Rank};
    Word += Rank;
    Out.push_back(T);
  }
}

// Finds a recorded sequence that begins with the calls held back and goes on
// with `Next`; any that begins with `Next` if none are held back.
bool Repeats::matches(const Step &Next) {
  if (!Following && !Now.empty())
    return false;
  auto GoesOn = [&](const Sequence &K) {
    return K.Recorded && K.Steps.size() > Held &&
           K.Steps[Held].Words == Next.Words;
  };
  if (Following && GoesOn(*Following))
    return true;
  for (Sequence &K : Known)
    if (GoesOn(K) &&
        std::equal(
            K.Steps.begin(), K.Steps.begin() + ptrdiff_t(Held),
            Following ? Following->Steps.begin() : K.Steps.begin(),
            [](const Step &A, const Step &B) { return A.Words == B.Words; })) {
      Following = &K;
      return true;
    }
  return false;
}

bool Repeats::takes(const Step &Next) {
  if (matches(Next)) {
    if (++Held < Following->Steps.size())
      return true;
    Sequence &Complete = *Following;
    Following = nullptr;
    Replayed += std::exchange(Held, 0);
    Complete.Recorded->launch(S);
    return true;
  }
  release();
  if (Now.size() < mostSteps)
    Now.push_back(Next);
  return false;
}

// Queues the calls that were held back.
void Repeats::release() {
  if (!Following)
    return;
  Now.assign(Following->Steps.begin(),
             Following->Steps.begin() + static_cast<ptrdiff_t>(Held));
  Following = nullptr;
  Held = 0;
  for (const Step &Each : Now)
    Queue(Each);
}

void Repeats::end() {
  release();
  std::vector<Step> Ended;
  Ended.swap(Now);
  if (Ended.empty() || Ended.size() == mostSteps)
    return;
  auto Same = [&](const Sequence &K) {
    return K.Steps.size() == Ended.size() &&
           std::equal(Ended.begin(), Ended.end(), K.Steps.begin(),
                      [](const Step &A, const Step &B) {
                        return A.Words == B.Words && B.isAlive();
                      });
  };
  auto Found = std::find_if(Known.begin(), Known.end(), Same);
  if (Found == Known.end()) {
    Known.push_front({std::move(Ended), nullptr, {}});
    if (Known.size() > mostSequences)
      Known.pop_back();
    return;
  }
  Known.splice(Known.begin(), Known, Found);
  if (Found->Recorded)
    return;
  // The calls themselves succeeded, so without memory for a graph they go on
  // without one.
  try {
    record(*Found);
  } catch (const Error &) {
    Known.pop_front();
  }
}

void Repeats::record(Sequence &Of) {
  for (const Step &Each : Of.Steps)
    for (const auto &Object : Each.Objects)
      Of.Keep.push_back(Object.lock());
  S.beginCapture();
  S.Capturing = true;
  try {
    for (const Step &Each : Of.Steps)
      Queue(Each);
  } catch (...) {
    S.Capturing = false;
    S.endCapture();
    throw;
  }
  S.Capturing = false;
  Of.Recorded = S.endCapture();
}

} // namespace greta::rt
