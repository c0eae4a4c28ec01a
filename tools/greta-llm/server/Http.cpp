// Http.cpp: see Http.h. Locks are taken in this order: an exchange's, the
// server's, the library's own.
#include "server/Http.h"
#include "Options.h"

#include <algorithm>
#include <cstdarg>
#include <cstring>
#include <microhttpd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <sys/socket.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace greta::llm {

namespace {

std::string lower(std::string text) {
  for (char &c : text)
    if (c >= 'A' && c <= 'Z')
      c = static_cast<char>(c - 'A' + 'a');
  return text;
}

// The name in "name:port" or "[::1]:port", without brackets; "" of neither.
std::string hostName(const std::string &authority) {
  size_t end = authority.find(':');
  if (!authority.empty() && authority[0] == '[') {
    end = authority.find(']');
    if (end == std::string::npos ||
        (end + 1 < authority.size() && authority[end + 1] != ':'))
      return "";
    return authority.substr(1, end - 1);
  }
  return authority.substr(0, end);
}

// As long for a wrong key as for the right one.
bool isSame(const std::string &given, const std::string &wanted) {
  unsigned differs = given.size() != wanted.size();
  for (size_t i = 0; i < wanted.size(); ++i)
    differs |=
        static_cast<unsigned>(wanted[i] ^ (i < given.size() ? given[i] : 0));
  return !differs;
}

// The values of all headers of a name.
std::vector<std::string> headersOf(MHD_Connection *connection,
                                   const char *name) {
  struct Found {
    const char *name;
    std::vector<std::string> values;
  } found{name, {}};
  MHD_get_connection_values_n(
      connection, MHD_HEADER_KIND,
      [](void *to, MHD_ValueKind, const char *key, size_t, const char *value,
         size_t size) {
        auto &all = *static_cast<Found *>(to);
        if (strcasecmp(key, all.name) == 0)
          all.values.emplace_back(value ? value : "", value ? size : 0);
        return MHD_YES;
      },
      &found);
  return found.values;
}

// Whether a proxy may find the body's length in a header that the library does
// not take for one, which would make the body the next request: the name is no
// name (white space behind it), the value has a CR in it, or it goes on in the
// next line, which the library puts behind the name.
bool mayHideLength(std::string name, std::string_view value) {
  name = lower(std::move(name));
  constexpr std::string_view signs = "!#$%&'*+-.^_`|~";
  bool isName = std::all_of(name.begin(), name.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
           signs.find(c) != signs.npos;
  });
  if (!isName || value.find('\r') != value.npos)
    return true;
  for (std::string_view length : {"content-length", "transfer-encoding"})
    if (name != length && name.rfind(length, 0) == 0)
      return true;
  return false;
}

// Whether any header of a request may.
bool mayHideLength(MHD_Connection *connection) {
  bool found = false;
  MHD_get_connection_values_n(
      connection, MHD_HEADER_KIND,
      [](void *to, MHD_ValueKind, const char *name, size_t length,
         const char *value, size_t size) {
        *static_cast<bool *>(to) |= mayHideLength(
            {name, length}, {value ? value : "", value ? size : 0});
        return MHD_YES;
      },
      &found);
  return found;
}

} // namespace

//===----------------------------------------------------------------------===//
// The port
//===----------------------------------------------------------------------===//

void Listener::refuse(const std::string &why) const {
  throw std::runtime_error("cannot listen at " + host_ + ":" +
                           std::to_string(port_) + ": " + why);
}

Listener::Listener(const std::string &host, int port)
    : host_(host), port_(port) {
  addrinfo wanted{}, *found = nullptr;
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_PASSIVE;
  if (int status = getaddrinfo(host.c_str(), std::to_string(port).c_str(),
                               &wanted, &found))
    refuse(gai_strerror(status));
  std::unique_ptr<addrinfo, void (*)(addrinfo *)> owner(found, freeaddrinfo);
  int problem = 0;
  for (const addrinfo *one = found; one; one = one->ai_next) {
    fd = socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int on = 1;
    sockaddr_storage address{};
    socklen_t size = sizeof(address);
    auto *any = reinterpret_cast<sockaddr *>(&address);
    if (fd >= 0 &&
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
        bind(fd, one->ai_addr, one->ai_addrlen) == 0 &&
        getsockname(fd, any, &size) == 0) {
      // Both kinds of addresses have the port at the same place.
      port_ = ntohs(reinterpret_cast<sockaddr_in *>(any)->sin_port);
      return;
    }
    problem = errno;
    if (fd >= 0)
      close(fd);
  }
  refuse(std::generic_category().message(problem));
}

Listener::~Listener() {
  if (fd >= 0)
    close(fd);
}

int Listener::listen() {
  // Another may have begun to listen meanwhile.
  if (::listen(fd, SOMAXCONN) != 0)
    refuse(std::generic_category().message(errno));
  return std::exchange(fd, -1);
}

//===----------------------------------------------------------------------===//
// The library's calls
//===----------------------------------------------------------------------===//

struct HttpServer::Callbacks {
  static MHD_Result access(void *self, MHD_Connection *connection,
                           const char *url, const char *method,
                           const char *version, const char *data, size_t *size,
                           void **context) {
    try {
      return static_cast<MHD_Result>(static_cast<HttpServer *>(self)->access(
          connection, url, method, version, data, size, context));
    } catch (const std::exception &) {
      return MHD_NO; // the connection closes
    }
  }

  // No path has anything to unescape.
  static size_t unescape(void *, MHD_Connection *, char *text) {
    return strlen(text);
  }

  static void completed(void *self, MHD_Connection *, void **context,
                        MHD_RequestTerminationCode why) {
    auto *exchange = static_cast<std::shared_ptr<Exchange> *>(*context);
    if (!exchange)
      return;
    static_cast<HttpServer *>(self)->complete(
        *exchange, why == MHD_REQUEST_TERMINATED_COMPLETED_OK);
    delete exchange;
    *context = nullptr;
  }

  static void notify(void *self, MHD_Connection *connection, void **context,
                     MHD_ConnectionNotificationCode what) {
    auto *server = static_cast<HttpServer *>(self);
    if (what == MHD_CONNECTION_NOTIFY_STARTED)
      server->connected(connection, context);
    else if (*context)
      server->disconnected(static_cast<HttpClient *>(*context));
  }
};

std::string HttpServer::errorText(int status, const std::string &what) {
  const char *type = status < 500 ? "invalid_request_error" : "server_error";
  constexpr size_t most = 1000;
  nlohmann::json error = {
      {"error",
       {{"message", what.size() > most ? what.substr(0, most) + ".." : what},
        {"type", type}}}};
  return error.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void HttpServer::connected(MHD_Connection *connection, void **context) {
  const MHD_ConnectionInfo *info =
      MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  int fd = info->connect_fd, on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  auto client = std::make_unique<HttpClient>();
  client->fd = fd;
  client->since = seconds();
  client->deadline = client->since + static_cast<double>(limits.request);
  *context = client.get();
  std::lock_guard<std::mutex> lock(mutex);
  clients.push_back(std::move(client));
  unsigned waits = 0;
  for (const auto &one : clients)
    waits += !one->current && !one->isEvicted;
  if (waits > limits.waitingClients)
    evict(*oldest(false, nullptr));
}

void HttpServer::disconnected(HttpClient *client) {
  std::lock_guard<std::mutex> lock(mutex);
  clients.remove_if([&](const auto &one) { return one.get() == client; });
}

/// The one that has waited longest, or sends a body for longest.
HttpClient *HttpServer::oldest(bool withBody, const HttpClient *except) {
  HttpClient *found = nullptr;
  for (const auto &one : clients)
    if (!one->current && !one->isEvicted && one.get() != except &&
        (!withBody || (one->receiving && one->receiving->held)) &&
        (!found || one->since < found->since))
      found = one.get();
  return found;
}

/// The library sees the end, and closes.
void HttpServer::evict(HttpClient &client) {
  client.isEvicted = true;
  shutdown(client.fd, SHUT_RDWR);
  if (client.receiving) {
    bodies -= client.receiving->held;
    client.receiving->held = 0;
  }
}

bool HttpServer::isOwnHost(const std::string &authority) const {
  return ownHosts.count(lower(hostName(authority))) != 0;
}

/// Says why a request is refused before its body comes; "" if it is not.
std::string HttpServer::checkHead(Exchange &exchange,
                                  MHD_Connection *connection,
                                  int &status) const {
  auto all = [&](const char *name) { return headersOf(connection, name); };
  status = 400;
  if (MHD_get_connection_values(connection, MHD_HEADER_KIND, nullptr, nullptr) >
      limits.headers) {
    status = 431;
    return "the request has more than " + std::to_string(limits.headers) +
           " headers";
  }
  if (mayHideLength(connection))
    return "a header has a name or a value that headers cannot have";
  // Two lengths, or a length and a coding, would leave the body's end open.
  std::vector<std::string> lengths = all("Content-Length"),
                           codings = all("Transfer-Encoding");
  if (lengths.size() + codings.size() > 1)
    return "the length of the body is given more than once";
  if (!codings.empty() && lower(codings[0]) != "chunked")
    return "the only Transfer-Encoding is chunked";
  std::vector<std::string> hosts = all("Host");
  if (hosts.size() != 1)
    return "the request has to have one Host";
  if (key.empty()) {
    // Without a key a page of another site must not reach the model, neither
    // by itself nor by a name of its own that leads here.
    status = 403;
    if (!isOwnHost(hosts[0]))
      return "the Host is none of this server's names";
    for (const std::string &origin : all("Origin"))
      if (lower(origin) != "http://" + lower(hosts[0]))
        return "the Origin is another site";
  } else if (exchange.path != "/health" && exchange.path != "/") {
    // The page has no secrets, and asks for the key itself.
    std::vector<std::string> given = all("Authorization");
    status = 401;
    // Anthropic's clients bring it by another name.
    std::vector<std::string> other = all("X-Api-Key");
    if (given.empty() && other.size() == 1)
      given = {"Bearer " + other[0]};
    if (!isSame(given.size() == 1 ? given[0] : "", "Bearer " + key))
      return "the API key is missing or wrong";
  }
  status = 415;
  for (const std::string &coding : all("Content-Encoding"))
    if (lower(coding) != "identity")
      return "a body with a Content-Encoding is not taken";
  if (exchange.method == "POST") {
    std::vector<std::string> types = all("Content-Type");
    std::string given = types.size() == 1 ? lower(types[0]) : "";
    given = given.substr(0, given.find(';'));
    given.erase(given.find_last_not_of(" \t") + 1);
    if (given != "application/json")
      return "the Content-Type has to be application/json";
  }
  status = 413;
  if (!lengths.empty() &&
      (lengths[0].size() > 18 ||
       atoll(lengths[0].c_str()) > static_cast<long long>(limits.body)))
    return "the request is larger than 4 MiB";
  return "";
}

int HttpServer::access(MHD_Connection *connection, const char *url,
                       const char *method, const char *, const char *data,
                       size_t *size, void **context) {
  auto *known = static_cast<std::shared_ptr<Exchange> *>(*context);
  if (known) {
    Exchange &exchange = **known;
    if (!*size)
      return exchange.settle();
    bool isRead = takeBody(exchange, data, *size);
    *size = 0;
    return isRead ? MHD_YES : MHD_NO;
  }
  if (isStopping)
    return MHD_NO;
  auto exchange = std::make_shared<Exchange>();
  exchange->server = this;
  exchange->connection = connection;
  exchange->method = method;
  exchange->path = url;
  exchange->begin = seconds();
  exchange->client = *static_cast<HttpClient *const *>(
      static_cast<const void *>(MHD_get_connection_info(
          connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)));
  *context = new std::shared_ptr<Exchange>(exchange);
  int status = 400;
  std::string problem = checkHead(*exchange, connection, status);
  if (!problem.empty()) {
    exchange->refuse(status, problem);
    // Who asks before sending is told before, and so is who sends without end
    // or does not say where it is.
    std::vector<std::string> lengths = headersOf(connection, "Content-Length");
    if (status == 400 || !headersOf(connection, "Expect").empty() ||
        (!lengths.empty() && lengths[0].size() > 7))
      return exchange->settle();
  }
  std::lock_guard<std::mutex> lock(mutex);
  exchange->client->receiving = exchange.get();
  return MHD_YES;
}

/// False: enough of a body that nobody wants.
bool HttpServer::takeBody(Exchange &exchange, const char *data, size_t size) {
  if (!exchange.isRefused && exchange.body.size() + size > limits.body) {
    exchange.refuse(413, "the request is larger than 4 MiB");
  }
  if (!exchange.isRefused) {
    std::lock_guard<std::mutex> lock(mutex);
    while (bodies + size > limits.bodies) {
      HttpClient *other = oldest(/*withBody=*/true, exchange.client);
      if (!other)
        break;
      evict(*other);
    }
    if (exchange.client->isEvicted)
      return false;
    if (bodies + size > limits.bodies) {
      exchange.refuse(503, "too many requests are being read");
    } else {
      bodies += size;
      exchange.held += size;
    }
  }
  if (!exchange.isRefused) {
    exchange.body.append(data, size);
    return true;
  }
  exchange.body = std::string();
  release(exchange);
  exchange.discarded += size;
  return exchange.discarded <= limits.discarded;
}

/// A whole request: its connection waits for nothing any more. False where the
/// server stops.
bool HttpServer::take(const std::shared_ptr<Exchange> &exchange) {
  std::lock_guard<std::mutex> lock(mutex);
  if (isOver)
    return false;
  HttpClient &client = *exchange->client;
  client.current = exchange;
  client.receiving = nullptr;
  client.deadline = 0;
  ++answering;
  if (exchange->method == "POST") {
    waiting.push_back(exchange);
    changed.notify_all();
  }
  return true;
}

/// The bytes of a body no longer count.
void HttpServer::release(Exchange &exchange) {
  std::lock_guard<std::mutex> lock(mutex);
  bodies -= exchange.held;
  exchange.held = 0;
}

void HttpServer::complete(const std::shared_ptr<Exchange> &exchange,
                          bool isDone) {
  HttpClient *client = exchange->client;
  release(*exchange);
  int status;
  {
    std::lock_guard<std::mutex> lock(exchange->mutex);
    if (isDone)
      MHD_set_connection_option(exchange->connection,
                                MHD_CONNECTION_OPTION_TIMEOUT, limits.silence);
    exchange->isOver = true;
    exchange->connection = nullptr;
    // The number that others give for a client that left.
    status = isDone ? exchange->status : 499;
  }
  {
    std::lock_guard<std::mutex> lock(mutex);
    answering -= client->current != nullptr;
    client->current = nullptr;
    client->receiving = nullptr;
    client->since = seconds();
    client->deadline = client->since + static_cast<double>(limits.request);
  }
  exchange->leave();
  log(*exchange, status);
}

void HttpServer::log(const Exchange &exchange, int status) const {
  if (!logs)
    return;
  std::string path;
  for (char c : exchange.path.substr(0, 100))
    path += c > ' ' && c < 127 ? c : '?';
  fprintf(stderr, "%s %s %d%s, %.0f ms\n", exchange.method.c_str(),
          path.c_str(), status,
          (exchange.note.empty() ? "" : " " + exchange.note).c_str(),
          (seconds() - exchange.begin) * 1e3);
}

//===----------------------------------------------------------------------===//
// The server
//===----------------------------------------------------------------------===//

void HttpServer::answer(const std::shared_ptr<Exchange> &exchange) {
  try {
    handle(exchange);
  } catch (const Refusal &refusal) {
    exchange->reply(refusal.status, errorText(refusal.status, refusal.what()));
  } catch (const std::bad_alloc &) {
    exchange->reply(503, errorText(503, "out of host memory"));
  } catch (const std::exception &error) {
    exchange->reply(500, errorText(500, error.what()));
  }
}

void HttpServer::work() {
  while (true) {
    std::shared_ptr<Exchange> exchange;
    {
      std::unique_lock<std::mutex> lock(mutex);
      changed.wait(lock, [&] { return isOver || !waiting.empty(); });
      if (isOver)
        return;
      exchange = std::move(waiting.front());
      waiting.pop_front();
    }
    answer(exchange);
    release(*exchange);
  }
}

/// Ends requests that take too long to arrive, and finds clients that left.
void HttpServer::watch() {
  std::unique_lock<std::mutex> lock(mutex);
  while (!isOver) {
    double now = seconds();
    std::vector<std::shared_ptr<Exchange>> exchanges;
    std::vector<pollfd> sockets;
    for (const auto &client : clients) {
      if (client->deadline && now > client->deadline && !client->isEvicted)
        evict(*client);
      if (client->current) {
        exchanges.push_back(client->current);
        sockets.push_back({client->fd, POLLRDHUP, 0});
      }
    }
    poll(sockets.data(), sockets.size(), 0);
    lock.unlock();
    for (size_t i = 0; i < sockets.size(); ++i) {
      if (sockets[i].revents & (POLLHUP | POLLERR))
        exchanges[i]->leave();
      else if (sockets[i].revents & POLLRDHUP)
        exchanges[i]->probe();
    }
    exchanges.clear();
    lock.lock();
    changed.wait_for(lock, std::chrono::milliseconds(100),
                     [&] { return isOver; });
  }
}

HttpServer::HttpServer(Listener &listener, std::string key, unsigned answers,
                       bool logs, Handler handle, Limits limits)
    : limits(limits), key(std::move(key)), logs(logs),
      handle(std::move(handle)),
      ownHosts{"localhost", "127.0.0.1", "::1", lower(listener.host())} {
  int fd = listener.listen();
  daemon = MHD_start_daemon(
      MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, nullptr,
      nullptr, &Callbacks::access, this,                                //
      MHD_OPTION_LISTEN_SOCKET, fd,                                     //
      MHD_OPTION_CONNECTION_LIMIT, answers + 2 * limits.waitingClients, //
      MHD_OPTION_CONNECTION_MEMORY_LIMIT, limits.head,                  //
      MHD_OPTION_CONNECTION_TIMEOUT, limits.silence,                    //
      MHD_OPTION_NOTIFY_COMPLETED, &Callbacks::completed, this,         //
      MHD_OPTION_NOTIFY_CONNECTION, &Callbacks::notify, this,           //
      MHD_OPTION_UNESCAPE_CALLBACK, &Callbacks::unescape, nullptr,      //
      MHD_OPTION_STRICT_FOR_CLIENT, 1,                                  //
      MHD_OPTION_END);
  if (!daemon) {
    close(fd);
    throw std::runtime_error("libmicrohttpd did not start");
  }
  for (int i = 0; i < 2; ++i)
    threads.emplace_back([this] { work(); });
  threads.emplace_back([this] { watch(); });
}

/// The library's thread may still be about to accept at the socket: who
/// connects is refused from here on, and stop() closes it behind that thread.
void HttpServer::quiesce() {
  int fd = MHD_quiesce_daemon(daemon);
  if (fd < 0)
    return;
  listening = fd;
  shutdown(fd, SHUT_RDWR);
}

void HttpServer::stop() {
  if (!daemon)
    return;
  quiesce();
  isStopping = true;
  std::vector<std::shared_ptr<Exchange>> open;
  {
    std::lock_guard<std::mutex> lock(mutex);
    isOver = true;
    for (const auto &client : clients)
      if (client->current)
        open.push_back(client->current);
  }
  changed.notify_all();
  for (std::thread &thread : threads)
    thread.join();
  // The library ends when none is suspended.
  for (const auto &exchange : open)
    exchange->abort();
  MHD_stop_daemon(daemon);
  daemon = nullptr;
  if (listening >= 0)
    close(listening);
}

HttpServer::~HttpServer() { stop(); }

} // namespace greta::llm
