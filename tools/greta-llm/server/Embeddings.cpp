// Embeddings.cpp: see Embeddings.h.
#include "server/Embeddings.h"
#include "OneLine.h"
#include "server/Replies.h"

#include <algorithm>
#include <cstring>

namespace greta::llm {

using json = OrderedJson;

// OpenAI's limit, too.
constexpr size_t mostInputs = 2048;

struct EmbeddingService::Job {
  std::vector<std::vector<int32_t>> inputs;
  bool isBase64 = false;
  int64_t tokens = 0;
  std::vector<size_t> order;     // of the inputs, the shortest first
  size_t next = 0;               // of these
  std::vector<std::string> data; // the vectors of those before, by input
  bool isNotFinite = false;      // one of them
  bool isAtWork = false;         // in a pass; of the service's mutex
  std::weak_ptr<Exchange> exchange;
  std::atomic<bool> isCancelled{false};

  std::mutex mutex; // of the answer
  Exchange::Part answer;
};

// Four bytes of each number, the lowest first, as base64.
static std::string base64Of(const std::vector<float> &numbers) {
  constexpr const char *letters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<uint8_t> bytes;
  for (float number : numbers) {
    uint32_t bits;
    memcpy(&bits, &number, sizeof(bits));
    for (int shift = 0; shift < 32; shift += 8)
      bytes.push_back(static_cast<uint8_t>(bits >> shift));
  }
  std::string text;
  for (size_t at = 0; at < bytes.size(); at += 3) {
    uint32_t three = 0;
    for (size_t i = at; i < at + 3; ++i)
      three = three << 8 | (i < bytes.size() ? bytes[i] : 0);
    for (size_t i = 0; i < 4; ++i)
      text += at + i > bytes.size() ? '=' : letters[three >> (18 - 6 * i) & 63];
  }
  return text;
}

static std::string listOf(const std::vector<float> &numbers) {
  std::string text;
  char one[32];
  for (float number : numbers) {
    snprintf(one, sizeof(one), "%s%.9g", text.empty() ? "" : ",",
             static_cast<double>(number));
    text += one;
  }
  return "[" + text + "]";
}

EmbeddingService::EmbeddingService(const Options &options, const Model &model,
                                   Encoder &encoder, const Tokenizer &tokenizer)
    : options(options), model(model), encoder(encoder), tokenizer(tokenizer),
      thread([this] { run(); }) {}

EmbeddingService::~EmbeddingService() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    isOver = true;
  }
  changed.notify_all();
  thread.join();
}

//===----------------------------------------------------------------------===//
// Requests
//===----------------------------------------------------------------------===//

std::vector<int32_t>
EmbeddingService::tokensOf(const OrderedJson &input) const {
  std::vector<int32_t> all;
  auto most = static_cast<size_t>(encoder.longest());
  bool isTooLong = false; // it is found out without a look at all
  if (input.is_string()) {
    const std::string &text = input.get_ref<const std::string &>();
    isTooLong = tokenizer.isTooLong(text.size(), encoder.longest());
    // Tokenizers that leave characters out have to read a text whole, and
    // others wait meanwhile.
    size_t readable = (size_t(64) << 10) + 64 * most;
    if (!isTooLong && text.size() > readable)
      throw Refusal(400, "a text of 'input' has " +
                             std::to_string(text.size()) + " bytes; at most " +
                             std::to_string(readable) + " are read for the " +
                             std::to_string(most) +
                             " tokens that the model takes");
    if (!isTooLong)
      all = tokenizer.encode(text, true, most);
  } else if (input.size() > most) {
    isTooLong = true;
  } else
    for (const json &token : input) {
      int64_t id = token.is_number_integer() ? token.get<int64_t>() : -1;
      if (id < 0 || id >= model.config.vocabulary)
        throw Refusal(400, "'input' has " + shown(token) +
                               ", which is no token of the model");
      all.push_back(static_cast<int32_t>(id));
    }
  if (isTooLong || all.size() > most)
    throw Refusal(400, "a text of 'input' has more tokens than the " +
                           std::to_string(most) + " that the model takes");
  if (all.empty())
    throw Refusal(400, "'input' has an empty text");
  return all;
}

std::shared_ptr<EmbeddingService::Job>
EmbeddingService::read(const std::string &text) const {
  json body = parsedRequest(text);
  checkKeys(body, "the request",
            {"input", "model", "encoding_format", "dimensions", "user"});
  for (const char *name : {"model", "user"})
    (void)textOf(body, name);
  auto job = std::make_shared<Job>();
  std::string format = textOf(body, "encoding_format");
  job->isBase64 = format == "base64";
  if (!format.empty() && format != "float" && !job->isBase64)
    throw Refusal(400, "'encoding_format' has to be \"float\" or \"base64\"");
  int64_t width = model.config.width;
  if (const json &asked = fieldOf(body, "dimensions");
      !asked.is_null() && asked != width)
    throw Refusal(400, "'dimensions' is " + shown(asked) +
                           "; the model's embeddings have " +
                           std::to_string(width));
  const json &input = fieldOf(body, "input");
  if (!input.is_string() && (!input.is_array() || input.empty()))
    throw Refusal(400, "'input' has to be a text, a list of tokens, or a list "
                       "of such");
  bool isOne = input.is_string() || input.front().is_number();
  if (!isOne && input.size() > mostInputs)
    throw Refusal(400, "'input' has " + std::to_string(input.size()) +
                           " texts; up to " + std::to_string(mostInputs) +
                           " are possible");
  for (const json &one : isOne ? json::array({input}) : input) {
    if (!one.is_string() && !one.is_array())
      throw Refusal(400, "'input' has " + shown(one) +
                             " in place of a text or a list of tokens");
    job->inputs.push_back(tokensOf(one));
    job->tokens += static_cast<int64_t>(job->inputs.back().size());
    job->order.push_back(job->order.size());
  }
  job->data.resize(job->inputs.size());
  std::sort(job->order.begin(), job->order.end(), [&](size_t a, size_t b) {
    size_t ofA = job->inputs[a].size(), ofB = job->inputs[b].size();
    return ofA != ofB ? ofA < ofB : a < b;
  });
  return job;
}

void EmbeddingService::take(const std::shared_ptr<Exchange> &exchange) {
  std::shared_ptr<Job> job = read(std::exchange(exchange->body, {}));
  job->exchange = exchange;
  exchange->note = std::to_string(job->inputs.size()) + " texts of " +
                   std::to_string(job->tokens) + " tokens";
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (!why.empty())
      throw Refusal(503, why);
    // Who left frees his place in the queue, but where he does not wait.
    auto end =
        std::remove_if(waiting.begin(), waiting.end(), [](const auto &other) {
          return other->isCancelled.load() && !other->isAtWork;
        });
    cancelled += waiting.end() - end;
    waiting.erase(end, waiting.end());
    if (waiting.size() > static_cast<size_t>(options.queue)) {
      ++refused;
      throw Refusal(429, "the queue is full; try again later");
    }
    waiting.push_back(job);
  }
  changed.notify_all();
  exchange->replyFrom(
      [job] {
        std::lock_guard<std::mutex> lock(job->mutex);
        return job->answer;
      },
      [job] { job->isCancelled = true; }, /*isStream=*/false,
      "application/json", " ");
}

//===----------------------------------------------------------------------===//
// Answers
//===----------------------------------------------------------------------===//

/// The next texts of the first request, and the next ones of others where there
/// is room. All count as long as the longest one, so no text is much longer
/// than the shortest one.
EmbeddingService::Pass EmbeddingService::nextPass() const {
  Pass pass;
  size_t shortest = SIZE_MAX, longest = 0;
  for (const std::shared_ptr<Job> &job : waiting) {
    if (job != waiting.front() && job->isCancelled)
      continue;
    for (size_t i = job->next; i < job->order.size(); ++i) {
      const std::vector<int32_t> &text = job->inputs[job->order[i]];
      size_t least = std::min(shortest, text.size()),
             most = std::max(longest, text.size());
      if (!pass.texts.empty() && (static_cast<int64_t>((pass.texts.size() + 1) *
                                                       most) > encoder.room() ||
                                  most > 2 * least + 16))
        break;
      shortest = least;
      longest = most;
      pass.texts.push_back(&text);
      pass.owners.push_back(job);
    }
  }
  return pass;
}

void EmbeddingService::embed(const Pass &pass) {
  std::vector<std::vector<float>> vectors = encoder.embed(pass.texts);
  ++passes;
  for (size_t i = 0; i < vectors.size(); ++i) {
    Job &job = *pass.owners[i];
    size_t index = job.order[job.next++];
    job.isNotFinite = job.isNotFinite || vectors[i].empty();
    job.data[index] =
        "{\"object\":\"embedding\",\"index\":" + std::to_string(index) +
        ",\"embedding\":" +
        (job.isBase64 ? "\"" + base64Of(vectors[i]) + "\""
                      : listOf(vectors[i])) +
        "}";
  }
}

std::string EmbeddingService::answerOf(const Job &job) const {
  std::string count = std::to_string(job.tokens);
  std::string data;
  for (const std::string &one : job.data)
    data += (data.empty() ? "" : ",") + one;
  return "{\"object\":\"list\",\"data\":[" + data +
         "],\"model\":" + dumped(json(model.path)) +
         ",\"usage\":{\"prompt_tokens\":" + count +
         ",\"total_tokens\":" + count + "}}";
}

void EmbeddingService::finish(const std::shared_ptr<Job> &job, int status,
                              std::string text) {
  {
    std::lock_guard<std::mutex> lock(job->mutex);
    if (job->answer.isLast)
      return;
    job->answer = {std::move(text), true, status};
  }
  if (auto alive = job->exchange.lock())
    alive->wake(/*isLast=*/true);
}

/// A request that failed.
void EmbeddingService::end(const std::shared_ptr<Job> &job,
                           const std::exception &problem) {
  ++failed;
  fprintf(stderr, "greta-llm: error: %s\n", onOneLine(problem.what()).c_str());
  auto error = dynamic_cast<const greta::Error *>(&problem);
  if (error && error->status() == GRETA_ERROR_DEVICE_LOST) {
    std::lock_guard<std::mutex> again(mutex);
    why = std::string("the device is lost: ") + problem.what();
    deviceIsLost = true;
  }
  finish(job, 500, HttpServer::errorText(500, problem.what()));
}

void EmbeddingService::run() {
  std::unique_lock<std::mutex> lock(mutex);
  while (true) {
    changed.wait(lock, [&] { return isOver || !waiting.empty(); });
    if (isOver)
      return;
    std::shared_ptr<Job> first = waiting.front();
    if (first->isCancelled) {
      ++cancelled;
      finish(first, 200, "");
      waiting.pop_front();
      changed.notify_all();
      continue;
    }
    Pass pass = nextPass();
    std::vector<std::shared_ptr<Job>> jobs = pass.owners;
    jobs.erase(std::unique(jobs.begin(), jobs.end()), jobs.end());
    for (const std::shared_ptr<Job> &job : jobs)
      job->isAtWork = true;
    lock.unlock();
    std::vector<std::shared_ptr<Job>> ended;
    try {
      embed(pass);
      for (const std::shared_ptr<Job> &job : jobs) {
        if (job->isNotFinite) {
          end(job, std::runtime_error(encoder.notFinite()));
        } else if (job->next == job->inputs.size()) {
          ++finished;
          tokens += job->tokens;
          finish(job, 200, answerOf(*job));
        } else {
          continue;
        }
        ended.push_back(job);
      }
    } catch (const std::exception &problem) {
      // Texts of others are evaluated again, with their own requests.
      end(first, problem);
      ended.push_back(first);
    }
    lock.lock();
    for (const std::shared_ptr<Job> &job : jobs)
      job->isAtWork = false;
    for (const std::shared_ptr<Job> &job : ended)
      waiting.erase(std::remove(waiting.begin(), waiting.end(), job),
                    waiting.end());
    if (!waiting.empty() && waiting.front() == first) {
      waiting.pop_front();
      waiting.push_back(first);
    }
    if (deviceIsLost)
      for (const std::shared_ptr<Job> &other : std::exchange(waiting, {}))
        finish(other, 503, HttpServer::errorText(503, why));
    changed.notify_all();
  }
}

void EmbeddingService::drain(double seconds) {
  std::unique_lock<std::mutex> lock(mutex);
  if (why.empty())
    why = "the server is ending";
  changed.wait_for(lock, std::chrono::duration<double>(seconds),
                   [&] { return waiting.empty(); });
  for (const std::shared_ptr<Job> &job : std::exchange(waiting, {})) {
    job->isCancelled = true;
    finish(job, 503, HttpServer::errorText(503, why));
  }
}

std::string EmbeddingService::problem() const {
  std::lock_guard<std::mutex> lock(mutex);
  return why;
}

std::string EmbeddingService::metrics() const {
  auto count = [](const std::atomic<int64_t> &value) {
    return static_cast<double>(value.load());
  };
  greta_memory memory = encoder.memory();
  std::unique_lock<std::mutex> lock(mutex);
  auto unfinished = static_cast<double>(waiting.size());
  lock.unlock();
  return metric("requests_finished_total", "counter",
                "Requests with an answer.", count(finished)) +
         metric("requests_cancelled_total", "counter",
                "Requests whose client left.", count(cancelled)) +
         metric("requests_refused_total", "counter",
                "Requests that met a full queue.", count(refused)) +
         metric("requests_failed_total", "counter",
                "Requests that the device failed.", count(failed)) +
         metric("requests_waiting", "gauge",
                "Requests in the queue, with the one at work.", unfinished) +
         metric("prompt_tokens_total", "counter", "Tokens of texts, evaluated.",
                count(tokens)) +
         metric("passes_total", "counter", "Passes through the model.",
                count(passes)) +
         metric("memory_in_use_bytes", "gauge", "Device memory of buffers.",
                static_cast<double>(memory.in_use)) +
         metric("memory_reserved_bytes", "gauge",
                "Device memory that the driver gave.",
                static_cast<double>(memory.reserved));
}

} // namespace greta::llm
