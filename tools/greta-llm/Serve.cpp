// Serve.cpp: the verb `serve`: OpenAI's completions and chat over HTTP, on the
// scheduler. In: requests as JSON. Out: answers as JSON, whole or as events
// while they are made; /metrics in Prometheus' form; /health; at / a page to
// chat with.
//
// SIGTERM and SIGINT end the server when open requests have their answers.
#include "Chat.h"
#include "Options.h"
#include "Scheduler.h"

#include <cmath>
#include <csignal>
#include <ctime>
#include <httplib.h>

namespace greta::llm {
namespace {

using nlohmann::json;

constexpr size_t largestBody = 4u << 20;

// What is wrong with a request.
struct Refusal : std::runtime_error {
  Refusal(int status, const std::string &what)
      : std::runtime_error(what), status(status) {}
  int status;
};

double numberOf(const json &body, const char *key, double otherwise,
                double least, double most) {
  auto it = body.find(key);
  if (it == body.end() || it->is_null())
    return otherwise;
  double value = it->is_number() ? it->get<double>() : NAN;
  if (!(value >= least && value <= most)) {
    char text[160];
    snprintf(text, sizeof(text), "'%s' has to be a number from %g to %g", key,
             least, most);
    throw Refusal(400, text);
  }
  return value;
}

bool flagOf(const json &body, const char *key) {
  auto it = body.find(key);
  return it != body.end() && it->is_boolean() && it->get<bool>();
}

std::vector<std::string> stopsOf(const json &body) {
  json given = body.value("stop", json());
  std::vector<std::string> stops;
  if (given.is_null())
    return stops;
  for (const json &stop : given.is_array() ? given : json::array({given})) {
    if (!stop.is_string() || stop.get<std::string>().empty() ||
        stops.size() == 16)
      throw Refusal(400, "'stop' has to be a text, or up to 16 of them");
    stops.push_back(stop.get<std::string>());
  }
  return stops;
}

class Server {
public:
  Server(const Options &options, const Model &model, Engine &engine,
         const Tokenizer &tokenizer)
      : options(options), model(model), engine(engine), tokenizer(tokenizer),
        chat(model),
        scheduler(engine, tokenizer, options.parallel, options.queue) {}

  int run();

private:
  void route();
  void answer(const httplib::Request &request, httplib::Response &response,
              bool isChat);
  Request read(const json &body, bool isChat) const;
  std::vector<int32_t> promptTokens(const json &body) const;
  std::string chatPrompt(const json &body) const;
  json describe(const std::string &id, bool isChat, bool isPiece,
                const std::string &text, const std::string &reason) const;
  json usage(const Answer &answer) const;
  void stream(httplib::Response &response, std::shared_ptr<Answer> answer,
              const std::string &id, bool isChat, bool wantsUsage);
  std::string metrics() const;

  const Options &options;
  const Model &model;
  Engine &engine;
  const Tokenizer &tokenizer;
  const ChatTemplate chat;
  Scheduler scheduler;
  std::string key;
  httplib::Server http;
  std::atomic<int64_t> numbered{0}, streaming{0};
};

// Text that need not be UTF-8, as JSON.
std::string dump(const json &value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

void refuse(httplib::Response &response, int status, const std::string &what) {
  response.status = status;
  const char *type = status < 500 ? "invalid_request_error" : "server_error";
  response.set_content(dump({{"error", {{"message", what}, {"type", type}}}}),
                       "application/json");
}

//===----------------------------------------------------------------------===//
// Requests
//===----------------------------------------------------------------------===//

std::vector<int32_t> Server::promptTokens(const json &body) const {
  json prompt = body.value("prompt", json());
  if (prompt.is_array() && prompt.size() == 1 && prompt[0].is_string())
    prompt = prompt[0];
  if (prompt.is_string())
    return tokenizer.encode(prompt.get<std::string>(), true);
  std::vector<int32_t> tokens;
  if (prompt.is_array())
    for (const json &token : prompt) {
      int64_t id = token.is_number_integer() ? token.get<int64_t>() : -1;
      if (id < 0 || id >= engine.vocabulary())
        throw Refusal(400, "'prompt' has " + dump(token) +
                               ", which is no token of the model");
      tokens.push_back(static_cast<int32_t>(id));
    }
  else
    throw Refusal(400, "'prompt' has to be a text or a list of tokens");
  return tokens;
}

std::string Server::chatPrompt(const json &body) const {
  if (!chat.problem().empty())
    throw Refusal(400, chat.problem() + "; use /v1/completions");
  json given = body.value("messages", json()), messages = json::array();
  if (!given.is_array() || given.empty())
    throw Refusal(400, "'messages' has to be a list of messages");
  for (const json &message : given) {
    if (!message.is_object() || !message.value("role", json()).is_string() ||
        !message.value("content", json()).is_string())
      throw Refusal(400, "a message has to have the texts 'role' and "
                         "'content'");
    messages.push_back(
        {{"role", message["role"]}, {"content", message["content"]}});
  }
  try {
    return chat.prompt(messages);
  } catch (const std::exception &why) {
    throw Refusal(400, why.what());
  }
}

Request Server::read(const json &body, bool isChat) const {
  if (!body.is_object())
    throw Refusal(400, "the request is no JSON object");
  Request request;
  if (numberOf(body, "n", 1, 1, 1024) != 1)
    throw Refusal(400, "'n' has to be 1");
  request.tokens =
      isChat ? tokenizer.encode(chatPrompt(body), false) : promptTokens(body);
  if (isChat && !chat.end().empty())
    if (auto end = tokenizer.find(chat.end()))
      request.ends.push_back(*end);
  if (request.tokens.empty())
    throw Refusal(400, "the prompt has no tokens");
  int64_t prompt = static_cast<int64_t>(request.tokens.size());
  int64_t room = std::min(scheduler.capacity(), model.config.context) - prompt;
  if (room < 1)
    throw Refusal(400, "the prompt has " + std::to_string(prompt) +
                           " tokens, which leave no room in the context");
  double most = numberOf(body, "max_tokens", isChat ? 512 : 16, 1, 1e9);
  most = numberOf(body, "max_completion_tokens", most, 1, 1e9);
  request.most = std::min(room, static_cast<int64_t>(most));
  Sampling &sampling = request.sampling;
  sampling.temperature = numberOf(body, "temperature", 1, 0, 100);
  sampling.topP = numberOf(body, "top_p", 1, 0, 1);
  sampling.minP = numberOf(body, "min_p", 0, 0, 1);
  sampling.topK = static_cast<int64_t>(numberOf(body, "top_k", 0, 0, 1 << 24));
  sampling.repeatPenalty = numberOf(body, "repeat_penalty", 1, 0.01, 100);
  sampling.seed =
      static_cast<uint64_t>(numberOf(body, "seed", 0, 0, 9007199254740992.0));
  request.stops = stopsOf(body);
  return request;
}

//===----------------------------------------------------------------------===//
// Answers
//===----------------------------------------------------------------------===//

json Server::describe(const std::string &id, bool isChat, bool isPiece,
                      const std::string &text,
                      const std::string &reason) const {
  json choice = {{"index", 0},
                 {"finish_reason", reason.empty() ? json() : json(reason)}};
  json message = {{"content", text}};
  if (!isPiece)
    message["role"] = "assistant";
  if (isChat)
    choice[isPiece ? "delta" : "message"] = message;
  else
    choice["text"] = text;
  const char *object = !isChat   ? "text_completion"
                       : isPiece ? "chat.completion.chunk"
                                 : "chat.completion";
  return {{"id", id},
          {"object", object},
          {"created", static_cast<int64_t>(time(nullptr))},
          {"model", model.path},
          {"choices", json::array({choice})}};
}

json Server::usage(const Answer &answer) const {
  int64_t generated = answer.generated;
  return {{"prompt_tokens", answer.promptTokens},
          {"completion_tokens", generated},
          {"total_tokens", answer.promptTokens + generated}};
}

void Server::stream(httplib::Response &response, std::shared_ptr<Answer> answer,
                    const std::string &id, bool isChat, bool wantsUsage) {
  ++streaming;
  response.set_chunked_content_provider(
      "text/event-stream",
      [this, answer, id, isChat, wantsUsage](size_t, httplib::DataSink &sink) {
        Answer::Piece piece = answer->next();
        json event = describe(id, isChat, true, piece.text, piece.reason);
        if (piece.reason == "error")
          event = {
              {"error",
               {{"message", "the device failed"}, {"type", "server_error"}}}};
        if (piece.isLast && wantsUsage)
          event["usage"] = usage(*answer);
        std::string text = "data: " + dump(event) + "\n\n" +
                           (piece.isLast ? "data: [DONE]\n\n" : "");
        sink.write(text.data(), text.size());
        if (piece.isLast)
          sink.done();
        return true;
      },
      [this, answer](bool) {
        // An answer that is read to its end has nobody to tell.
        answer->cancel();
        --streaming;
      });
}

void Server::answer(const httplib::Request &given, httplib::Response &response,
                    bool isChat) {
  json body = json::parse(given.body, nullptr, /*allow_exceptions=*/false);
  Request request = read(body, isChat);
  std::shared_ptr<Answer> answer = scheduler.submit(std::move(request));
  if (!answer)
    throw Refusal(429, "the queue is full; try again later");
  std::string id =
      (isChat ? "chatcmpl-" : "cmpl-") + std::to_string(++numbered);
  if (flagOf(body, "stream"))
    return stream(
        response, answer, id, isChat,
        flagOf(body.value("stream_options", json::object()), "include_usage"));
  std::string text;
  Answer::Piece piece;
  do {
    piece = answer->next();
    text += piece.text;
  } while (!piece.isLast);
  if (piece.reason == "error")
    throw Refusal(500, "the device failed");
  json whole = describe(id, isChat, false, text, piece.reason);
  whole["usage"] = usage(*answer);
  response.set_content(dump(whole), "application/json");
}

std::string Server::metrics() const {
  const Metrics &m = scheduler.metrics();
  std::string text;
  auto add = [&](const char *name, const char *kind, const char *help,
                 double value) {
    char line[400];
    snprintf(line, sizeof(line),
             "# HELP greta_%s %s\n# TYPE greta_%s %s\ngreta_%s %.15g\n", name,
             help, name, kind, name, value);
    text += line;
  };
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
  add("requests_waiting", "gauge", "Requests in the queue.", count(m.waiting));
  add("requests_running", "gauge", "Requests in the batch.", count(m.running));
  add("prompt_tokens_total", "counter", "Tokens of prompts.",
      count(m.promptTokens));
  add("generated_tokens_total", "counter", "Tokens generated.",
      count(m.generatedTokens));
  add("steps_total", "counter", "Steps of the engine.", count(m.steps));
  add("step_seconds_total", "counter", "Time in steps.",
      count(m.stepMicroseconds) * 1e-6);
  add("first_tokens_total", "counter", "Prompts that were evaluated.",
      count(m.firstTokens));
  add("first_token_seconds_total", "counter",
      "Time from arrival to the first token.",
      count(m.firstTokenMicroseconds) * 1e-6);
  add("cache_tokens", "gauge", "Tokens that the KV cache holds.",
      static_cast<double>(scheduler.capacity()));
  add("cache_tokens_free", "gauge", "Of these free.",
      static_cast<double>(scheduler.freeTokens()));
  greta_memory memory = engine.memory();
  add("memory_in_use_bytes", "gauge", "Device memory of buffers.",
      static_cast<double>(memory.in_use));
  add("memory_reserved_bytes", "gauge", "Device memory that the driver gave.",
      static_cast<double>(memory.reserved));
  return text;
}

//===----------------------------------------------------------------------===//
// The server
//===----------------------------------------------------------------------===//

void Server::route() {
  // Every waiting request has a thread of its own.
  size_t threads = static_cast<size_t>(options.parallel + options.queue + 8);
  http.new_task_queue = [threads] { return new httplib::ThreadPool(threads); };
  http.set_payload_max_length(largestBody);
  http.set_keep_alive_timeout(5);
  http.set_tcp_nodelay(true);
  http.set_pre_routing_handler([this](const httplib::Request &request,
                                      httplib::Response &response) {
    std::string given = request.get_header_value("Authorization");
    std::string wanted = "Bearer " + key;
    // As long for a wrong key as for the right one.
    unsigned differs = given.size() != wanted.size();
    for (size_t i = 0; i < wanted.size(); ++i)
      differs |=
          static_cast<unsigned>(wanted[i] ^ (i < given.size() ? given[i] : 0));
    // The page has no secrets, and asks for the key itself.
    bool isOpen = request.path == "/health" || request.path == "/";
    if (key.empty() || !differs || isOpen)
      return httplib::Server::HandlerResponse::Unhandled;
    refuse(response, 401, "the API key is missing or wrong");
    return httplib::Server::HandlerResponse::Handled;
  });
  http.set_exception_handler([](const httplib::Request &,
                                httplib::Response &response,
                                std::exception_ptr problem) {
    try {
      std::rethrow_exception(problem);
    } catch (const Refusal &refusal) {
      refuse(response, refusal.status, refusal.what());
    } catch (const std::exception &error) {
      refuse(response, 500, error.what());
    }
  });
  http.set_error_handler(
      [](const httplib::Request &request, httplib::Response &response) {
        if (response.body.empty())
          refuse(response, response.status,
                 response.status == 413
                     ? "the request is larger than 4 MiB"
                     : "there is no " + request.method + " " + request.path);
      });
  auto post = [this](const char *path, bool isChat) {
    http.Post(path, [this, isChat](const httplib::Request &request,
                                   httplib::Response &response) {
      answer(request, response, isChat);
    });
  };
  post("/v1/completions", false);
  post("/v1/chat/completions", true);
  http.Get("/", [](const httplib::Request &, httplib::Response &response) {
    response.set_header("Content-Security-Policy",
                        "default-src 'none'; style-src 'unsafe-inline'; "
                        "script-src 'unsafe-inline'; connect-src 'self'; "
                        "base-uri 'none'; form-action 'none'; "
                        "frame-ancestors 'none'");
    response.set_content(chatPage, "text/html; charset=utf-8");
  });
  http.Get("/v1/models",
           [this](const httplib::Request &, httplib::Response &response) {
             json one = {{"id", model.path},
                         {"object", "model"},
                         {"owned_by", "greta"},
                         {"has_chat_template", chat.problem().empty()}};
             response.set_content(
                 dump({{"object", "list"}, {"data", json::array({one})}}),
                 "application/json");
           });
  http.Get("/health",
           [](const httplib::Request &, httplib::Response &response) {
             response.set_content("{\"status\":\"ok\"}", "application/json");
           });
  http.Get("/metrics",
           [this](const httplib::Request &, httplib::Response &response) {
             response.set_content(metrics(), "text/plain; version=0.0.4");
           });
}

int Server::run() {
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
  route();
  int port = static_cast<int>(options.port), listening = -1;
  http.set_socket_options([&](socket_t socket) {
    int on = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    listening = socket;
  });
  if (port == 0)
    port = http.bind_to_any_port(options.host);
  else if (!http.bind_to_port(options.host, port))
    port = -1;
  // The library lets five connections wait to be accepted; of more, some would
  // be reset half a minute later.
  if (port < 0 || listen(listening, SOMAXCONN) != 0)
    fail("cannot listen at " + options.host + ":" +
         std::to_string(options.port));
  sigset_t ending;
  sigemptyset(&ending);
  sigaddset(&ending, SIGTERM);
  sigaddset(&ending, SIGINT);
  std::thread waiter([&] {
    int signal;
    sigwait(&ending, &signal);
    // What is open is finished; what comes meanwhile is refused.
    scheduler.drain();
    while (streaming > 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    http.stop();
  });
  printf("listening at http://%s:%d\n", options.host.c_str(), port);
  fflush(stdout);
  http.listen_after_bind();
  waiter.join();
  return 0;
}

} // namespace

int serve(const Options &options) {
  // Before there are threads, so that none of them is interrupted.
  sigset_t ending;
  sigemptyset(&ending);
  sigaddset(&ending, SIGTERM);
  sigaddset(&ending, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ending, nullptr);
  signal(SIGPIPE, SIG_IGN);
  Model model = readModel(options.model, options.synthetic);
  Tokenizer tokenizer(model);
  EngineOptions engineOptions = EngineOptions::of(options);
  engineOptions.sequences = options.parallel;
  Engine engine(model, options.package, engineOptions);
  return Server(options, model, engine, tokenizer).run();
}

} // namespace greta::llm
