// Serve.cpp: the verb `serve`: OpenAI's completions and chats over HTTP, on the
// scheduler, and chats as Ollama and Anthropic have them. In: requests as JSON
// (Requests.h). Out: answers as JSON, whole or as events while they are made
// (Replies.h); a model of embeddings answers
// /v1/embeddings alone (Embeddings.h); /metrics in Prometheus' form; /health;
// at / a page to chat with.
//
// SIGTERM and SIGINT end the server when open requests have their answers, or
// after --grace seconds. A lost device ends it after one, with status 1.
#include "Compile.h"
#include "OneLine.h"
#include "Options.h"
#include "engine/DraftModel.h"
#include "server/Embeddings.h"
#include "server/Http.h"
#include "server/Replies.h"

#include <atomic>
#include <csignal>
#include <malloc.h>
#include <map>
#include <optional>
#include <thread>
#include <unistd.h>

namespace greta::llm {
namespace {

using json = nlohmann::ordered_json;

const std::map<std::string, Api> apis = {{"/v1/completions", Api::Completion},
                                         {"/v1/chat/completions", Api::Chat},
                                         {"/api/chat", Api::Ollama},
                                         {"/v1/messages", Api::Messages}};

/// Whether a request is for this path. It is refused if its method is another
/// than `allowed`.
bool isFor(Exchange &exchange, const std::string &path, const char *allowed,
           bool isAllowed) {
  if (exchange.path != path)
    return false;
  if (isAllowed)
    return true;
  exchange.addHeader("Allow", allowed);
  throw Refusal(405, path + " takes " + allowed + ", not " + exchange.method);
}

bool gets(Exchange &exchange, const std::string &path) {
  const std::string &method = exchange.method;
  return isFor(exchange, path, "GET, HEAD",
               method == "GET" || method == "HEAD");
}

bool posts(Exchange &exchange, const std::string &path) {
  return isFor(exchange, path, "POST", exchange.method == "POST");
}

/// The refusal of a path that the server does not have.
Refusal unknownTarget(const Exchange &exchange) {
  return {404, "there is no " + exchange.method + " " + exchange.path};
}

/// Answers, for servers of both kinds, about tokens and health; false: the
/// request is another. `work` is what answers wait for.
template <typename Work>
bool answerCommon(Exchange &exchange, const RequestReader &reader,
                  const Work &work) {
  if (posts(exchange, "/tokenize")) {
    exchange.reply(200,
                   dumped(reader.tokenize(std::exchange(exchange.body, {}))));
    return true;
  }
  if (posts(exchange, "/detokenize")) {
    exchange.reply(200,
                   dumped(reader.detokenize(std::exchange(exchange.body, {}))));
    return true;
  }
  if (!gets(exchange, "/health"))
    return false;
  std::string problem = work.problem();
  json status = {{"status", problem.empty() ? "ok" : problem}};
  exchange.reply(problem.empty() ? 200 : 503, dumped(status));
  return true;
}

// The answer of /v1/models, with more about the one model.
std::string modelsText(const Model &model, const json &more) {
  json one = {{"id", model.path}, {"object", "model"}, {"owned_by", "greta"}};
  one.update(more);
  return dumped({{"object", "list"}, {"data", json::array({one})}});
}

/// The key that requests have to bring; "" for none.
std::string keyOf(const Options &options) {
  std::string key;
  if (!options.keyFile.empty()) {
    key = readText(options.keyFile);
    key = key.substr(0, key.find_first_of("\r\n"));
    if (key.empty())
      fail(options.keyFile + ": its first line is empty");
  }
  bool isLocal = options.host == "127.0.0.1" || options.host == "::1" ||
                 options.host == "localhost";
  if (!isLocal && key.empty())
    fail("others can reach " + options.host +
         "; name a file with a key that they have to bring (--api-key-file)");
  return key;
}

// The address and key by which clients come in. A mistake in them is reported
// before a model is loaded, which takes long.
struct Entrance {
  explicit Entrance(const Options &options)
      : key(keyOf(options)),
        listener(options.host, static_cast<int>(options.port)) {}

  const std::string key;
  Listener listener;
};

class Server {
public:
  Server(const Options &options, const Model &model, Engine &engine,
         const Tokenizer &tokenizer, Drafts *drafts)
      : options(options), model(model), engine(engine), tokenizer(tokenizer),
        scheduler(engine, tokenizer, options, drafts),
        reader(model, tokenizer, scheduler.capacity()) {}

  int run(Entrance &entrance);

private:
  void handle(const std::shared_ptr<Exchange> &exchange);
  void complete(const std::shared_ptr<Exchange> &exchange, Api api);
  std::string metrics() const;
  void describeItself() const;

  const Options &options;
  const Model &model;
  Engine &engine;
  const Tokenizer &tokenizer;
  Scheduler scheduler;
  const RequestReader reader;
  std::atomic<int64_t> numbered{0};
};

//===----------------------------------------------------------------------===//
// The server's life
//===----------------------------------------------------------------------===//

/// Listens until a signal comes; then `work`, which is what answers wait for,
/// finishes open requests and refuses new ones.
template <typename Work>
int listenUntilEnd(const Options &options, Entrance &entrance,
                   const HttpServer::Handler &handle, Work &work) {
  HttpServer http(entrance.listener, entrance.key,
                  static_cast<unsigned>(options.parallel + options.queue),
                  !options.isQuiet, handle);
  printf("listening at http://%s:%d\n", options.host.c_str(),
         entrance.listener.port());
  fflush(stdout);
  sigset_t ending;
  sigemptyset(&ending);
  sigaddset(&ending, SIGTERM);
  sigaddset(&ending, SIGINT);
  const timespec moment{0, 100'000'000};
  while (!work.isLost()) {
    if (sigtimedwait(&ending, nullptr, &moment) <= 0)
      continue;
    double end = seconds() + static_cast<double>(options.grace);
    http.quiesce();
    work.drain(static_cast<double>(options.grace));
    // Who does not read has until then, too, and a moment.
    while (http.isBusy() && seconds() < end + 1 && !work.isLost())
      usleep(10000);
    http.stop();
    return 0;
  }
  // For a second, who waits and who asks is told. The rest of the device may
  // hang when it is closed.
  sleep(1);
  fflush(nullptr);
  _exit(1);
}

//===----------------------------------------------------------------------===//
// Answers
//===----------------------------------------------------------------------===//

void Server::complete(const std::shared_ptr<Exchange> &exchange, Api api) {
  Asked asked = reader.read(std::exchange(exchange->body, {}), api);
  size_t count = asked.requests.size();
  // The exchange ends with the last of several answers.
  auto open = std::make_shared<std::atomic<size_t>>(count);
  for (Request &request : asked.requests)
    request.wake = [weak = std::weak_ptr<Exchange>(exchange), open,
                    isStream = asked.isStream](Request::News news) {
      // One that fails is the end of all.
      bool isLast = news == Request::News::Error ||
                    (news == Request::News::Last && --*open == 0);
      // Nobody needs a part of a whole answer.
      if (isStream || isLast)
        if (auto alive = weak.lock())
          alive->wake(isLast);
    };
  if (count > scheduler.mostWaiting())
    throw Refusal(400, std::to_string(count) +
                           " answers are more than the server's queue takes, " +
                           std::to_string(scheduler.mostWaiting()));
  std::vector<std::shared_ptr<Answer>> answers;
  try {
    answers = scheduler.submit(std::move(asked.requests));
  } catch (const GrammarTooHard &error) {
    throw Refusal(400, error.what());
  }
  if (answers.empty()) {
    std::string problem = scheduler.problem();
    throw problem.empty() ? Refusal(429, "the queue is full; try again later")
                          : Refusal(503, problem);
  }
  std::shared_ptr<Reply> reply =
      Reply::of(api, asked, ++numbered, model.path, tokenizer, answers);
  auto problem = [this] {
    std::string said = scheduler.problem();
    return said.empty() ? "the device failed" : said;
  };
  auto cancel = [answers] {
    for (const std::shared_ptr<Answer> &answer : answers)
      answer->cancel();
  };
  Exchange::Source source = [=, note = &exchange->note]() {
    Reply::Part part = reply->take(problem);
    if (part.isLast) {
      *note = reply->note();
      cancel(); // of several, some may go on behind an error
    }
    return Exchange::Part{std::move(part.text), part.isLast, part.status};
  };
  // An answer that is read to its end has nobody to tell. Events have comments;
  // before JSON there may be spaces.
  bool isLines = api == Api::Ollama;
  exchange->replyFrom(std::move(source), cancel, asked.isStream,
                      !asked.isStream ? "application/json"
                      : isLines       ? "application/x-ndjson"
                                      : "text/event-stream",
                      asked.isStream && !isLines ? ":\n\n" : " ");
}

std::string Server::metrics() const {
  const Metrics &m = scheduler.metrics();
  std::string text;
  auto add = [&](const char *name, const char *kind, const char *help,
                 double value) { text += metric(name, kind, help, value); };
  auto count = [](const std::atomic<int64_t> &value) {
    return static_cast<double>(value.load());
  };
  add("requests_finished_total", "counter", "Requests with an answer.",
      count(m.finished));
  add("requests_cancelled_total", "counter", "Requests whose client left.",
      count(m.cancelled));
  add("requests_refused_total", "counter", "Requests that met a full queue.",
      count(m.refused));
  add("requests_failed_total", "counter", "Requests that the device failed.",
      count(m.failed));
  add("requests_preempted_total", "counter",
      "Requests that gave their part of the cache to older ones.",
      count(m.preempted));
  add("requests_waiting", "gauge", "Requests in the queue.", count(m.waiting));
  add("requests_running", "gauge", "Requests in the batch.", count(m.running));
  add("prompt_tokens_total", "counter", "Tokens of prompts, evaluated.",
      count(m.promptTokens));
  add("prompt_passes_total", "counter",
      "Passes over tokens of one prompt or several.", count(m.promptPasses));
  add("cached_tokens_total", "counter",
      "Tokens of prompts that the prefix cache had.", count(m.cachedTokens));
  add("generated_tokens_total", "counter", "Tokens generated.",
      count(m.generatedTokens));
  add("guessed_tokens_total", "counter",
      "Tokens that were guessed and checked (--drafts).", count(m.guessed));
  add("right_guesses_total", "counter",
      "Guessed tokens that were right, and so taken into answers.",
      count(m.rightGuesses));
  add("steps_total", "counter", "Steps of the engine.", count(m.steps));
  add("step_seconds_total", "counter", "Time in steps.",
      count(m.stepMicroseconds) * 1e-6);
  add("step_rows_total", "counter",
      "Rows of tokens that steps computed, used or not.",
      static_cast<double>(engine.stepRows()));
  add("first_tokens_total", "counter", "Prompts that were evaluated.",
      count(m.firstTokens));
  add("first_token_seconds_total", "counter",
      "Time from arrival to the first token.",
      count(m.firstTokenMicroseconds) * 1e-6);
  text += m.firstToken.text("greta_time_to_first_token_seconds",
                            "From arrival to the first token.");
  text += m.gap.text("greta_time_between_tokens_seconds",
                     "Between the tokens of an answer.");
  text += m.request.text("greta_request_seconds",
                         "From arrival to the last token.");
  add("cache_tokens", "gauge", "Tokens that the KV cache holds.",
      static_cast<double>(scheduler.capacity()));
  add("cache_tokens_free", "gauge",
      "Tokens of the KV cache that are free, or kept for prompts that begin "
      "alike.",
      static_cast<double>(scheduler.freeTokens()));
  greta_memory memory = engine.memory();
  add("memory_in_use_bytes", "gauge", "Device memory of buffers.",
      static_cast<double>(memory.in_use));
  add("memory_reserved_bytes", "gauge", "Device memory that the driver gave.",
      static_cast<double>(memory.reserved));
  return text;
}

void Server::handle(const std::shared_ptr<Exchange> &exchange) {
  auto api = apis.find(exchange->path);
  if (api != apis.end() && posts(*exchange, api->first))
    return complete(exchange, api->second);
  if (answerCommon(*exchange, reader, scheduler))
    return;
  if (gets(*exchange, "/metrics"))
    return exchange->reply(200, metrics(), "text/plain; version=0.0.4");
  if (gets(*exchange, "/v1/models"))
    return exchange->reply(
        200, modelsText(model,
                        {{"has_chat_template", reader.chatProblem().empty()}}));
  if (posts(*exchange, "/v1/embeddings"))
    throw Refusal(400, "the model makes texts, not embeddings; a server of a "
                       "model of embeddings, such as bert, answers this");
  if (gets(*exchange, "/")) {
    exchange->addHeader("Content-Security-Policy",
                        "default-src 'none'; style-src 'unsafe-inline'; "
                        "script-src 'unsafe-inline'; connect-src 'self'; "
                        "base-uri 'none'; form-action 'none'; "
                        "frame-ancestors 'none'");
    return exchange->reply(200, chatPage, "text/html; charset=utf-8");
  }
  throw unknownTarget(*exchange);
}

//===----------------------------------------------------------------------===//
// The server
//===----------------------------------------------------------------------===//

void Server::describeItself() const {
  if (options.isQuiet)
    return;
  auto number = [](int64_t value) { return std::to_string(value); };
  int64_t batch = engine.batch();
  std::string line = model.path + " at " + engine.deviceName() + ": context " +
                     number(model.config.context) + " tokens, KV cache " +
                     number(scheduler.capacity()) + " tokens, " +
                     number(options.parallel) + " slots in batches of " +
                     number(batch) + ", queue " + number(options.queue);
  fprintf(stderr, "%s\n", onOneLine(line).c_str());
  if (batch < options.parallel)
    fprintf(stderr,
            "greta-llm: warning: the package has functions for %lld sequences "
            "at once, so %lld take several passes over the weights; compile "
            "with --batch=1,%lld\n",
            static_cast<long long>(batch),
            static_cast<long long>(options.parallel),
            static_cast<long long>(options.parallel));
}

int Server::run(Entrance &entrance) {
  describeItself();
  return listenUntilEnd(
      options, entrance,
      [this](const std::shared_ptr<Exchange> &exchange) { handle(exchange); },
      scheduler);
}

//===----------------------------------------------------------------------===//
// Embeddings
//===----------------------------------------------------------------------===//

class EmbeddingServer {
public:
  EmbeddingServer(const Options &options, const Model &model, Encoder &encoder,
                  const Tokenizer &tokenizer)
      : options(options), model(model), encoder(encoder),
        service(options, model, encoder, tokenizer),
        reader(model, tokenizer, encoder.longest()) {}

  int run(Entrance &entrance);

private:
  void handle(const std::shared_ptr<Exchange> &exchange);

  const Options &options;
  const Model &model;
  Encoder &encoder;
  EmbeddingService service;
  const RequestReader reader;
};

void EmbeddingServer::handle(const std::shared_ptr<Exchange> &exchange) {
  if (posts(*exchange, "/v1/embeddings"))
    return service.take(exchange);
  if (answerCommon(*exchange, reader, service))
    return;
  if (gets(*exchange, "/metrics"))
    return exchange->reply(200, service.metrics(), "text/plain; version=0.0.4");
  if (gets(*exchange, "/v1/models"))
    return exchange->reply(
        200, modelsText(model, {{"dimensions", model.config.width}}));
  if (apis.count(exchange->path) && posts(*exchange, exchange->path))
    throw Refusal(400, "the model is one of embeddings, which makes no texts; "
                       "it answers /v1/embeddings");
  throw unknownTarget(*exchange);
}

int EmbeddingServer::run(Entrance &entrance) {
  if (!options.isQuiet)
    fprintf(stderr,
            "%s at %s: embeddings of %lld numbers, texts of up to %lld "
            "tokens\n",
            onOneLine(model.path).c_str(), encoder.deviceName().c_str(),
            static_cast<long long>(model.config.width),
            static_cast<long long>(encoder.longest()));
  return listenUntilEnd(
      options, entrance,
      [this](const std::shared_ptr<Exchange> &exchange) { handle(exchange); },
      service);
}

/// Memory of requests goes back to the system when they are answered. By itself
/// the C library keeps a heap for each thread, and after the first large text
/// is freed it puts the next ones into these, where they leave holes.
void returnMemory() {
#ifdef __GLIBC__
  mallopt(M_ARENA_MAX, 2);
  mallopt(M_MMAP_THRESHOLD, 64 << 10);
  mallopt(M_TRIM_THRESHOLD, 1 << 20);
#endif
}

// Ends the process at one of these signals while it exists: other ranks may
// never come, and a communicator waits for them for minutes.
class EndsAtOnce {
public:
  explicit EndsAtOnce(const sigset_t &signals)
      : watch([this, signals] {
          timespec time{0, 100'000'000};
          while (!isOver)
            if (sigtimedwait(&signals, nullptr, &time) > 0)
              _exit(0);
        }) {}
  ~EndsAtOnce() {
    isOver = true;
    watch.join();
  }

private:
  std::atomic<bool> isOver{false};
  std::thread watch;
};

} // namespace

int serve(const Options &options) {
  returnMemory();
  // Before there are threads, so that none of them is interrupted.
  sigset_t ending;
  sigemptyset(&ending);
  sigaddset(&ending, SIGTERM);
  sigaddset(&ending, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ending, nullptr);
  signal(SIGPIPE, SIG_IGN);
  // The other ranks have no clients.
  std::optional<Entrance> entrance;
  if (options.rank == 0)
    entrance.emplace(options);
  Model model = readModel(options.model, options.synthetic);
  Tokenizer tokenizer(model);
  EngineOptions engineOptions = EngineOptions::of(options);
  engineOptions.sequences = options.parallel;
  engineOptions.mayHaveFewer = !options.hasParallel;
  bool isEncoder = model.config.has(Bidirectional);
  std::string package;
  try {
    package = packageFor(
        model, options,
        isEncoder ? std::vector<int64_t>()
                  : batchesFor(options.parallel * (options.drafts + 1)));
  } catch (const std::exception &) {
    if (!isEndAsked()) // which ends the compiler
      throw;
  }
  if (isEndAsked())
    return 0; // while the kernels were compiled
  if (isEncoder) {
    Encoder encoder(model, package, engineOptions);
    return EmbeddingServer(options, model, encoder, tokenizer).run(*entrance);
  }
  std::optional<EndsAtOnce> meeting;
  if (!options.meet.empty())
    meeting.emplace(ending);
  Engine engine(model, package, engineOptions);
  meeting.reset();
  Options chosen = options;
  chosen.parallel = engine.sequences();
  return engine.lead([&] {
    std::unique_ptr<Drafts> drafts =
        draftsFor(options, tokenizer, engine, chosen.parallel);
    if (isEndAsked())
      return 0; // while models were loaded
    engine.warmUp();
    return Server(chosen, model, engine, tokenizer, drafts.get())
        .run(*entrance);
  });
}

} // namespace greta::llm
