// Http.h: HTTP/1.1 for requests that take long, on libmicrohttpd. In: a
// port and a function that answers. Out: its answers, whole or as a stream.
//
// One thread has all connections, so a slow or silent client costs memory and
// no thread. Two more threads (workers) run the function for POST; GET is
// answered at once. Everything that a client may send or hold is bounded
// (Limits); a refused request ends its connection, so nothing behind it is read
// as the next request.
#ifndef GRETA_LLM_HTTP_H
#define GRETA_LLM_HTTP_H

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

struct MHD_Connection;
struct MHD_Daemon;

namespace greta::llm {

// A refused request: the reason, and the HTTP status of the answer.
struct Refusal : std::runtime_error {
  Refusal(int status, const std::string &what)
      : std::runtime_error(what), status(status) {}
  int status;
};

struct Limits {
  size_t head = 32 << 10;        // bytes of a request's line and headers
  int headers = 64;              //
  size_t body = 4 << 20;         // bytes of one body
  size_t bodies = 64 << 20;      // of all that are being read
  size_t discarded = 8 << 20;    // of a refused request's body
  unsigned silence = 5;          // seconds without a byte while one is due
  unsigned stalled = 20;         // seconds in which a client reads nothing
  int64_t request = 30;          // seconds for a request to arrive,
                                 // and for an answer to be read once complete
  unsigned waitingClients = 192; // connections that have no request yet; of
                                 // more, the oldest is closed
};

class HttpServer;
struct HttpClient;

// One request and its answer. Every function may be called on any thread.
class Exchange : public std::enable_shared_from_this<Exchange> {
public:
  // A part of an answer, as far as there is one.
  struct Part {
    std::string text;
    bool isLast = false;
    int status = 200; // of the whole; a stream has 200
  };
  using Source = std::function<Part()>;

  std::string method, path, body;
  std::string note; // for the log; complete before the answer's last part

  void reply(int status, std::string text,
             std::string type = "application/json");
  // The answer is what `source` gives, which is asked again after each wake();
  // from the last one on, the client has a limited time to read it.
  // `left` is called when the client has gone; `filler` may stand between parts
  // and means nothing.
  void replyFrom(Source source, std::function<void()> left, bool isStream,
                 std::string type, std::string filler);
  void wake(bool isLast);
  void addHeader(std::string name, std::string value);

private:
  friend HttpServer;

  int settle();
  int queue(int status, const std::string &text);
  int queueStream();
  long read(char *to, size_t most);
  void fill();
  void limitReading();
  void resume();
  void abort();
  void probe();
  void leave();
  bool refuse(int status, const std::string &what);

  HttpServer *server = nullptr;
  HttpClient *client = nullptr;
  MHD_Connection *connection = nullptr;
  std::vector<std::pair<std::string, std::string>> headers;
  double begin = 0;
  size_t held = 0; // bytes of the body that count; under the server's lock
  size_t discarded = 0;
  int status = 0;

  std::mutex mutex; // of what follows
  std::string type = "application/json", filler, pending;
  size_t sent = 0; // of pending
  Source source;
  std::function<void()> left;
  bool isTaken = false, isRefused = false, isStream = false, isProbed = false,
       isSuspended = false, isLast = false, isAborted = false, isOver = false;
};

// A connection. It waits until it has a request, and again behind an answer.
struct HttpClient {
  int fd;
  std::atomic<double> deadline;      // seconds(); 0: none
  double since;                      // when it began to wait
  bool isEvicted = false;            //
  std::shared_ptr<Exchange> current; // being answered
  Exchange *receiving = nullptr;     // its body is being read
};

// A port that is taken before there is anybody to answer: until then the system
// refuses who connects.
class Listener {
public:
  // Throws where the port is another's, who listens there.
  Listener(const std::string &host, int port);
  ~Listener();
  Listener(const Listener &) = delete;

  const std::string &host() const { return host_; }
  int port() const { return port_; }
  // From here on who connects waits for the caller, who owns the socket.
  int listen();

private:
  [[noreturn]] void refuse(const std::string &why) const;

  const std::string host_;
  int port_, fd = -1;
};

class HttpServer {
public:
  // `handle` answers; what it throws is the answer, too.
  using Handler = std::function<void(const std::shared_ptr<Exchange> &)>;
  // `key`: what requests have to bring as a bearer; "" for none.
  HttpServer(Listener &listener, std::string key, unsigned answers, bool logs,
             Handler handle, Limits limits = {});
  ~HttpServer();

  // Takes no connection any more.
  void quiesce();
  // Whether somebody waits for an answer, or reads one.
  bool isBusy() const { return answering > 0; }
  // Closes every connection.
  void stop();

  // A refusal as OpenAI's clients read it, with so much of the reason that what
  // a client sent does not come back as a whole.
  static std::string errorText(int status, const std::string &what);

private:
  friend Exchange;
  struct Callbacks;
  friend Callbacks;

  std::string checkHead(Exchange &exchange, MHD_Connection *connection,
                        int &status) const;
  bool isOwnHost(const std::string &host) const;
  int access(MHD_Connection *connection, const char *url, const char *method,
             const char *version, const char *data, size_t *size,
             void **context);
  bool takeBody(Exchange &exchange, const char *data, size_t size);
  bool take(const std::shared_ptr<Exchange> &exchange);
  void release(Exchange &exchange);
  void complete(const std::shared_ptr<Exchange> &exchange, bool isDone);
  void connected(MHD_Connection *connection, void **context);
  void disconnected(HttpClient *client);
  void evict(HttpClient &client);
  HttpClient *oldest(bool withBody, const HttpClient *except);
  void answer(const std::shared_ptr<Exchange> &exchange);
  void work();
  void watch();
  void log(const Exchange &exchange, int status) const;

  const Limits limits;
  const std::string key;
  const bool logs;
  const Handler handle;
  std::set<std::string> ownHosts;
  MHD_Daemon *daemon = nullptr;
  int listening = -1; // the socket, once no connection is taken any more

  std::atomic<bool> isStopping{false};
  std::atomic<int64_t> answering{0};
  std::mutex mutex; // of what follows
  std::condition_variable changed;
  std::list<std::unique_ptr<HttpClient>> clients;
  size_t bodies = 0;
  std::deque<std::shared_ptr<Exchange>> waiting;
  bool isOver = false;
  std::vector<std::thread> threads;
};

} // namespace greta::llm
#endif
