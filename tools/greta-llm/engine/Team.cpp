// Team.cpp: see Team.h. Also what an engine does as one of several: it makes
// the others, follows the first, joins their communicator, and adds up over
// all.
#include "engine/Team.h"
#include "engine/Engine.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <future>

namespace greta::llm {

void Team::fail(const std::string &problem) {
  {
    std::lock_guard<std::mutex> guard(lock);
    if (why.empty())
      why = problem;
  }
  changed.notify_all();
}

std::string Team::failure(std::chrono::milliseconds patience) {
  std::unique_lock<std::mutex> guard(lock);
  changed.wait_for(guard, patience, [&] { return !why.empty(); });
  return why;
}

//===----------------------------------------------------------------------===//
// Threads
//===----------------------------------------------------------------------===//

int64_t Threads::least(int64_t number) {
  std::unique_lock<std::mutex> guard(lock);
  size_t mine = round;
  smallest = std::min(smallest, number);
  if (++came == size) {
    agreed = smallest;
    smallest = INT64_MAX;
    came = 0;
    ++round;
    changed.notify_all();
  }
  changed.wait(guard, [&] { return round != mine || !why.empty(); });
  if (!why.empty())
    llm::fail(why);
  return agreed;
}

std::vector<Team::Member> Threads::meet(size_t number, const Member &member) {
  {
    std::lock_guard<std::mutex> guard(lock);
    members[number] = member;
  }
  least(0);
  return members;
}

void Calls::add(std::shared_ptr<const Call> call) {
  {
    std::lock_guard<std::mutex> guard(lock);
    calls.push_back(std::move(call));
  }
  changed.notify_all();
}

void Calls::end() {
  {
    std::lock_guard<std::mutex> guard(lock);
    ends = true;
  }
  changed.notify_all();
}

bool Calls::hasEnded() {
  std::lock_guard<std::mutex> guard(lock);
  return ends && calls.empty();
}

std::shared_ptr<const Call>
Calls::next(std::optional<std::chrono::milliseconds> time) {
  std::unique_lock<std::mutex> guard(lock);
  auto isOver = [&] { return ends || !calls.empty(); };
  if (time)
    changed.wait_for(guard, *time, isOver);
  else
    changed.wait(guard, isOver);
  if (calls.empty())
    return nullptr;
  std::shared_ptr<const Call> call = std::move(calls.front());
  calls.pop_front();
  return call;
}

ThreadFollower::ThreadFollower(std::shared_ptr<Team> team,
                               std::function<std::unique_ptr<Engine>()> make)
    : team(std::move(team)),
      thread([this, make = std::move(make)] { run(make); }) {}

ThreadFollower::~ThreadFollower() {
  team->fail("the first device has ended"); // while they are made
  calls.end();
  thread.join();
}

// An engine that fails ends the communicator, so that all hear of it.
void ThreadFollower::run(const std::function<std::unique_ptr<Engine>()> &make) {
  std::unique_ptr<Engine> engine;
  try {
    engine = make();
    while (std::shared_ptr<const Call> call = calls.next())
      engine->take(*call);
  } catch (const std::exception &problem) {
    team->fail(problem.what());
    if (engine)
      engine->abort(problem.what());
  }
}

//===----------------------------------------------------------------------===//
// Processes
//===----------------------------------------------------------------------===//

namespace {

// One process reads its part of a model while another has read it, and one that
// has ended is noticed at once.
constexpr uint64_t patience = 10 * 60 * 1000;
// A message has so many; a longer call takes a second one.
constexpr size_t messageBytes = 4096;
// More than the texts and masks of all places, and no more than a rank can be
// made to allocate.
constexpr uint64_t mostBytes = uint64_t(1) << 30;
// How often rank 0 says that it is there.
constexpr std::chrono::milliseconds heartbeat(1000);

// A rank says this of itself.
struct Record {
  uint64_t free, alike;
  char device[240];
};

} // namespace

Ranks::Ranks(const std::string &address, size_t number, size_t size)
    : Team(size), address(address), number(number), runtime("host"),
      stream(runtime.stream()), buffer(runtime.allocate(messageBytes)) {
  greta_comm_options how{};
  place(how);
  how.rank = static_cast<uint32_t>(number);
  how.size = static_cast<uint32_t>(size);
  how.timeout_milliseconds = patience;
  comm = std::make_unique<Comm>(runtime.comm(how));
}

int64_t Ranks::least(int64_t number) {
  stream.write(buffer, &number, sizeof(number));
  comm->allReduce(stream, buffer, buffer, 1, "i64", GRETA_COMM_MIN);
  stream.read(buffer, &number, sizeof(number));
  return number;
}

std::vector<Team::Member> Ranks::meet(size_t number, const Member &member) {
  Record own{member.free, member.alike, {}};
  member.device.copy(own.device, sizeof(own.device) - 1);
  std::vector<Record> all(size);
  Buffer records = runtime.allocate(size * sizeof(Record));
  stream.write(buffer, &own, sizeof(own));
  comm->allGather(stream, records, buffer, sizeof(own));
  stream.read(records, all.data(), records.size());
  std::vector<Member> members;
  for (const Record &record : all)
    members.push_back(
        {{record.device, strnlen(record.device, sizeof(record.device))},
         record.free,
         record.alike});
  return members;
}

// The bytes of rank 0, behind their number.
void Ranks::exchange(std::string &bytes) {
  std::string message(messageBytes, 0);
  auto broadcast = [&](const Buffer &with, size_t count) {
    comm->broadcast(stream, with, with, count, 0);
  };
  uint64_t size = bytes.size();
  constexpr size_t room = messageBytes - sizeof(size);
  if (number == 0) {
    memcpy(message.data(), &size, sizeof(size));
    bytes.copy(message.data() + sizeof(size), room);
    stream.write(buffer, message.data(), message.size());
  }
  broadcast(buffer, messageBytes);
  stream.read(buffer, message.data(), message.size());
  memcpy(&size, message.data(), sizeof(size));
  if (size > mostBytes)
    llm::fail("a call of rank 0 has " + std::to_string(size) +
              " bytes; the most is " + std::to_string(mostBytes));
  size_t first = std::min<size_t>(size, room);
  if (number)
    bytes = message.substr(sizeof(size), first);
  if (size == first)
    return;
  bytes.resize(size);
  Buffer rest = runtime.allocate(size - first);
  if (number == 0)
    stream.write(rest, bytes.data() + first, rest.size());
  broadcast(rest, rest.size());
  stream.read(rest, bytes.data() + first, rest.size());
}

void Ranks::send(const Call &call) {
  std::string bytes = bytesOf(call);
  exchange(bytes);
}

Call Ranks::receive() {
  std::string bytes;
  exchange(bytes);
  return callOf(bytes);
}

std::shared_ptr<Ranks> Meeting::begin() {
  hasBegun = true;
  return ranks = std::make_shared<Ranks>(address, number, size);
}

void Meeting::fail(const std::string &why) {
  if (ranks)
    ranks->abort(why);
  else if (!hasBegun)
    decline(why);
}

void Meeting::end() {
  if (!hasBegun)
    decline("it has ended before all had met");
}

// Waits as long as another rank would wait for this one, which may be long:
// then who sits in front of it is told. After a signal only ranks that are
// there are told.
void Meeting::decline(const std::string &why) {
  constexpr uint64_t brief = 1000; // milliseconds
  sigset_t ending;
  sigemptyset(&ending);
  sigaddset(&ending, SIGTERM);
  sigaddset(&ending, SIGINT);
  // A server has blocked them. One that came already would end the process
  // here, and the ranks that wait would not hear why.
  bool isAsked = false;
  for (timespec none{}; sigtimedwait(&ending, nullptr, &none) > 0;)
    isAsked = true;
  // Nobody waits for signals any more.
  pthread_sigmask(SIG_UNBLOCK, &ending, nullptr);
  greta_comm_options how{};
  how.address = address.c_str();
  how.rank = static_cast<uint32_t>(number);
  how.size = static_cast<uint32_t>(size);
  how.timeout_milliseconds = isAsked ? brief : patience;
  std::future<void> told =
      std::async(std::launch::async, [&] { Comm::decline(how, why); });
  if (told.wait_for(std::chrono::seconds(2)) == std::future_status::timeout)
    fprintf(stderr,
            "greta-llm: waits for the other ranks, to tell them why, for %d "
            "minutes at most; Ctrl-C ends this\n",
            static_cast<int>(patience / 60'000));
  try {
    told.get();
  } catch (const greta::Error &) { // they have not come
  }
}

RankFollowers::RankFollowers(std::shared_ptr<Ranks> ranks,
                             std::function<void(const std::string &)> lost)
    : ranks(std::move(ranks)), lost(std::move(lost)),
      thread([this] { run(); }) {}

RankFollowers::~RankFollowers() {
  calls.end();
  thread.join();
}

void RankFollowers::run() {
  try {
    Call nothing, last;
    last.kind = Call::Last;
    while (!calls.hasEnded()) {
      std::shared_ptr<const Call> call = calls.next(heartbeat);
      ranks->send(call ? *call : nothing);
    }
    ranks->send(last);
  } catch (const std::exception &problem) {
    ranks->fail(problem.what());
    lost(problem.what());
  }
}

int Engine::lead(const std::function<int()> &work) {
  // An error is known where the device is waited for, too, and the others may
  // have told theirs, and ended the communicator, before. Others are told the
  // cause while the engine is there.
  try {
    if (!options.number)
      return work();
    follow();
    return 0;
  } catch (const greta::Error &problem) {
    std::string cause = causeOf(problem);
    abort(cause);
    throw greta::Error(problem.status(), cause.c_str());
  } catch (const std::exception &problem) {
    abort(problem.what());
    throw;
  }
}

// A rank other than 0, until rank 0 ends. It fails as a whole where it or
// another fails.
void Engine::follow() {
  auto &ranks = static_cast<Ranks &>(*options.team);
  for (Call call = ranks.receive(); call.kind != Call::Last;
       call = ranks.receive())
    take(call);
}

//===----------------------------------------------------------------------===//
// An engine as one of several
//===----------------------------------------------------------------------===//

void Engine::take(const Call &call) {
  checkCall(
      call,
      {static_cast<int64_t>(places.left.size()), pages, positions, vocabulary(),
       chunk(), static_cast<int64_t>(ends.size()), stepPlaces(),
       placesAreClear && std::all_of(places.left.begin(), places.left.end(),
                                     [](int64_t left) { return left == 0; })});
  Sequence sequence = call.sequence;
  switch (call.kind) {
  case Call::MakePlaces:
    return makePlaces(call.place);
  case Call::Append:
  case Call::StepAndAppend: {
    std::vector<Sequence> sequences; // copies: their pages are what is known
    std::vector<Part> parts;
    sequences.reserve(call.checked.size());
    for (const Checked &one : call.checked)
      parts.push_back({&sequences.emplace_back(one.sequence), one.tokens.data(),
                       one.tokens.size()});
    if (call.kind == Call::Append)
      return append(parts);
    (void)step(parts);
    return;
  }
  case Call::EvaluateOne:
    (void)evaluateOne(sequence, call.tokens.front());
    return;
  case Call::WriteTable:
    return writeTable(call.place, sequence);
  case Call::SetMask:
    return setMask(call.place, call.mask);
  case Call::Move:
    return move(call.place, call.to);
  case Call::Begin:
    (void)begin(call.place, sequence, call.tokens, call.sampling, call.left,
                call.said, static_cast<size_t>(call.part));
    return;
  case Call::Step:
    (void)step();
    return;
  case Call::Check:
    (void)check(call.checked);
    return;
  case Call::End:
    return end(call.place);
  case Call::ForgetPlaces:
    return forgetPlaces();
  case Call::Nothing:
  case Call::Last:
    return;
  }
}

// NCCL takes this memory as it is, where other memory is copied and the host
// waits for the copy.
greta::Buffer Engine::allocateForOthers(size_t bytes) {
  if (isShared())
    try {
      return runtime.allocateShared(GRETA_FD_OPAQUE, bytes);
    } catch (const greta::Error &) {
    }
  return runtime.allocate(bytes);
}

// The first one makes the others, which load their parts beside it; as
// processes they make themselves.
void Engine::makeOthers(const Model &whole) {
  if (!options.meet.empty())
    options.team = options.meeting->begin();
  if (!isShared() || options.team)
    return;
  options.team = std::make_shared<Threads>(options.count);
  for (size_t number = 1; number < options.count; ++number) {
    EngineOptions its = options;
    its.number = number;
    its.device = options.devices[number];
    its.isQuiet = true;
    others.push_back(std::make_unique<ThreadFollower>(
        options.team, [its, &whole, path = packagePath] {
          return std::make_unique<Engine>(whole, path, its);
        }));
  }
}

// When all are ready, so that nobody waits for one that has failed.
void Engine::join() {
  options.team->least(0);
  greta_comm_options how{};
  options.team->place(how);
  how.rank = static_cast<uint32_t>(options.number);
  how.size = static_cast<uint32_t>(options.count);
  comm = std::make_unique<greta::Comm>(runtime.comm(how));
  if (hasSums())
    for (Step &step : steps)
      for (auto &[i, layer] : step.layers)
        layer.setComm(*comm);
  if (!options.meet.empty() && options.number == 0)
    others.push_back(std::make_unique<RankFollowers>(
        std::static_pointer_cast<Ranks>(options.team),
        [this](const std::string &why) { comm->fail(why); }));
}

// After an error the others would wait for what does not come.
Engine::~Engine() {
  if (std::uncaught_exceptions())
    abort("it has ended with an error");
}

void Engine::abort(const std::string &why) {
  if (options.team)
    options.team->abort(why);
  if (comm)
    comm->fail(why);
}

// A rank that has heard of a lost one may have ended the communicator of the
// devices; the calls' one, which says why, is used each second.
std::string Engine::causeOf(const std::exception &problem) const {
  auto error = dynamic_cast<const greta::Error *>(&problem);
  bool asksCalls = !options.meet.empty() && options.number == 0 && error &&
                   error->status() == GRETA_ERROR_PEER_LOST;
  std::string why =
      isShared() ? options.team->failure(heartbeat * (asksCalls ? 2 : 0)) : "";
  return why.empty() ? problem.what() : why;
}

std::string Engine::deviceName() const {
  std::string own = nameOfDevice(runtime), all;
  bool areEqual = true;
  for (size_t stage = 0; stage < members.size(); ++stage) {
    const std::string &name = members[(stage + 1) % members.size()].device;
    areEqual = areEqual && name == own;
    all += (stage ? " + " : "") + name;
  }
  return !isShared() ? own
         : areEqual  ? std::to_string(members.size()) + " x " + own
                     : all;
}

// The sum over the devices.
void Engine::reduce(const Buffer &of, int64_t tokens) {
  comm->allReduce(stream, of, of,
                  static_cast<size_t>(tokens * model.config.width), "f32");
}

} // namespace greta::llm
