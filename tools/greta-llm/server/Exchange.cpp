// Exchange.cpp: one request and its answer, see Http.h. The library calls in
// its own thread; answers come from others. A connection that has nothing to
// send is suspended, and resumed when there is more.
#include "Options.h"
#include "server/Http.h"

#include <algorithm>
#include <cstring>
#include <microhttpd.h>

namespace greta::llm {

void Exchange::addHeader(std::string name, std::string value) {
  headers.emplace_back(std::move(name), std::move(value));
}

void Exchange::reply(int code, std::string text, std::string kind) {
  replyFrom([part = Part{std::move(text), true, code}] { return part; },
            nullptr, false, std::move(kind), "");
}

void Exchange::replyFrom(Source from, std::function<void()> whenLeft,
                         bool streams, std::string kind, std::string nothing) {
  bool isGone;
  {
    std::lock_guard<std::mutex> lock(mutex);
    source = std::move(from);
    isStream = streams;
    type = std::move(kind);
    filler = std::move(nothing);
    isGone = isOver;
    if (!isGone)
      left = whenLeft;
    resume();
  }
  if (isGone && whenLeft)
    whenLeft();
}

void Exchange::wake(bool isComplete) {
  std::lock_guard<std::mutex> lock(mutex);
  if (isComplete && !isOver)
    limitReading();
  resume();
}

void Exchange::resume() {
  if (isSuspended && !isOver) {
    isSuspended = false;
    MHD_resume_connection(connection);
  }
}

void Exchange::abort() {
  std::lock_guard<std::mutex> lock(mutex);
  isAborted = true;
  resume();
}

/// A client may close the side on which it sends and still read, or it may have
/// gone: only a byte that is sent to it tells.
void Exchange::probe() {
  std::lock_guard<std::mutex> lock(mutex);
  if (!source || isLast || filler.empty() || !pending.empty())
    return;
  isProbed = true;
  pending = filler;
  resume();
}

void Exchange::leave() {
  std::function<void()> call;
  {
    std::lock_guard<std::mutex> lock(mutex);
    std::swap(call, left);
  }
  if (call)
    call();
}

/// Takes the next pieces from the source.
void Exchange::fill() {
  if (isLast || !source)
    return;
  Part part = source();
  pending += part.text;
  isLast = part.isLast;
  if (!isStream && !isProbed)
    status = part.status;
  if (isLast)
    limitReading();
}

/// The answer is complete. Who reads a byte now and then would otherwise hold
/// his connection as long as he likes.
void Exchange::limitReading() {
  if (client->deadline == 0)
    client->deadline = seconds() + static_cast<double>(server->limits.request);
}

int Exchange::queue(int code, const std::string &text) {
  status = code;
  MHD_Response *response = MHD_create_response_from_buffer(
      text.size(), const_cast<char *>(text.data()), MHD_RESPMEM_MUST_COPY);
  if (!response)
    return MHD_NO;
  MHD_add_response_header(response, "Content-Type", type.c_str());
  MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
  for (const auto &[name, value] : headers)
    MHD_add_response_header(response, name.c_str(), value.c_str());
  if (code >= 400)
    MHD_add_response_header(response, "Connection", "close");
  int done =
      MHD_queue_response(connection, static_cast<unsigned>(code), response);
  MHD_destroy_response(response);
  return done;
}

long Exchange::read(char *to, size_t most) {
  std::lock_guard<std::mutex> lock(mutex);
  if (isAborted || server->isStopping)
    return MHD_CONTENT_READER_END_WITH_ERROR;
  if (sent == pending.size()) {
    pending.clear();
    sent = 0;
    fill();
  }
  if (sent < pending.size()) {
    size_t count = std::min(most, pending.size() - sent);
    memcpy(to, pending.data() + sent, count);
    sent += count;
    return static_cast<long>(count);
  }
  if (isLast)
    return MHD_CONTENT_READER_END_OF_STREAM;
  isSuspended = true;
  MHD_suspend_connection(connection);
  return 0;
}

int Exchange::queueStream() {
  status = 200;
  auto *self = new std::shared_ptr<Exchange>(shared_from_this());
  MHD_Response *response = MHD_create_response_from_callback(
      MHD_SIZE_UNKNOWN, 4096,
      [](void *exchange, uint64_t, char *to, size_t most) -> ssize_t {
        return (*static_cast<std::shared_ptr<Exchange> *>(exchange))
            ->read(to, most);
      },
      self,
      [](void *exchange) {
        delete static_cast<std::shared_ptr<Exchange> *>(exchange);
      });
  if (!response) {
    delete self;
    return MHD_NO;
  }
  MHD_add_response_header(response, "Content-Type", type.c_str());
  MHD_add_response_header(response, "Cache-Control", "no-store");
  int done = MHD_queue_response(connection, 200, response);
  MHD_destroy_response(response);
  return done;
}

/// The request is there as a whole, or there is more of its answer.
int Exchange::settle() {
  std::unique_lock<std::mutex> lock(mutex);
  if (isAborted || server->isStopping)
    return MHD_NO;
  if (isRefused)
    return queue(status, pending);
  if (!isTaken) {
    isTaken = true;
    if (!server->take(shared_from_this()))
      return MHD_NO;
    // A client that reads slowly has longer than one that says nothing.
    MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT,
                              server->limits.stalled);
    if (method != "POST") {
      lock.unlock();
      server->answer(shared_from_this());
      lock.lock();
    }
  }
  bool streams = source && (isStream || isProbed);
  if (!streams)
    fill();
  if (streams || isLast) {
    // The library's lock of a response comes before this one: in read().
    lock.unlock();
    return streams ? queueStream() : queue(status, pending);
  }
  isSuspended = true;
  MHD_suspend_connection(connection);
  return MHD_YES;
}

/// Remembers what is wrong; said when the body is there.
bool Exchange::refuse(int code, const std::string &what) {
  isRefused = true;
  status = code;
  pending = HttpServer::errorText(code, what);
  return false;
}

} // namespace greta::llm
