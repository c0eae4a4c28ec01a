// HttpTest.cpp: the server's limits of time, which are too long for a test of
// the whole program (test/llm/test_llm_hostile.py has the others).
#include "server/Http.h"
#include "Options.h"

#include <arpa/inet.h>
#include <cerrno>
#include <chrono>
#include <gtest/gtest.h>
#include <map>
#include <netinet/in.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

using namespace greta::llm;

// As greta-llm's, without the rest of it.
double greta::llm::seconds() {
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

namespace {

using Clock = std::chrono::steady_clock;

std::string head(const std::string &line) {
  return line + " HTTP/1.1\r\nHost: localhost\r\n";
}

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// A client with a small buffer that has sent a request, or its beginning,
// and reads 512 bytes whenever it is asked to.
class Client {
public:
  Client(int port, const std::string &text) {
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int small = 2048;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
    sockaddr_in address = loopback(port);
    auto *any = reinterpret_cast<sockaddr *>(&address);
    EXPECT_EQ(connect(fd, any, sizeof(address)), 0);
    EXPECT_EQ(send(fd, text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  ~Client() { close(fd); }
  void write(char one) { send(fd, &one, 1, MSG_NOSIGNAL); }
  // False once the server has closed the connection.
  bool read() {
    char bytes[512];
    ssize_t got = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    return got > 0 || (got < 0 && errno == EAGAIN);
  }

private:
  int fd;
};

// Seconds until nobody is answered any more; `most` where somebody still is.
double busySeconds(const HttpServer &server, Client &client, double most) {
  Clock::time_point begin = Clock::now();
  double seconds = 0;
  while (server.isBusy() && seconds < most) {
    client.read();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  }
  return seconds;
}

// More than the kernel takes at once.
const std::string large(16 << 20, 'x');

// Answers with `large` first; the rest is there soon after, or never.
void answer(const std::shared_ptr<Exchange> &exchange) {
  bool isComplete = exchange->path == "/complete";
  exchange->replyFrom(
      [isComplete, isFirst = true]() mutable {
        bool first = std::exchange(isFirst, false);
        return Exchange::Part{first ? large : "", !first && isComplete, 200};
      },
      nullptr, true, "text/event-stream", "");
  exchange->wake(isComplete);
}

TEST(Http, ASlowReaderOfACompleteAnswerIsNotWaitedFor) {
  Limits limits;
  limits.request = 2;
  Listener listener("127.0.0.1", 0);
  HttpServer server(listener, "", 4, false, answer, limits);
  auto seconds = [&](const char *path, double most) {
    Client client(listener.port(), head(std::string("GET ") + path) + "\r\n");
    while (!server.isBusy())
      std::this_thread::yield();
    return busySeconds(server, client, most);
  };
  EXPECT_LT(seconds("/complete", 20), 20);
  // As long as the answer is being made it may be read slowly.
  EXPECT_GE(seconds("/goes-on", 5), 5);
}

// A byte now and then is no silence, so only the time of the whole request ends
// it, be it the head or the body that drips.
TEST(Http, ARequestThatDripsIsEnded) {
  Limits limits;
  limits.request = 1;
  Listener listener("127.0.0.1", 0);
  HttpServer server(listener, "", 4, false, answer, limits);
  auto begin = Clock::now();
  auto seconds = [&] {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  };
  Client ofHead(listener.port(), head("GET /complete") + "X: "),
      ofBody(listener.port(), head("POST /complete") +
                                  "Content-Type: application/json\r\n" +
                                  "Content-Length: 4000\r\n\r\n{");
  std::map<Client *, double> ends; // when the server closed it
  while (ends.size() < 2 && seconds() < 20) {
    for (Client *client : {&ofHead, &ofBody}) {
      client->write(' ');
      if (!ends.count(client) && !client->read())
        ends[client] = seconds();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_GE(ends[&ofHead], 1);
  EXPECT_GE(ends[&ofBody], 1);
}

// While the model is loaded the system refuses who connects, and a port that
// is another's is known at once.
TEST(Http, APortIsTakenBeforeAnybodyListens) {
  Listener first("127.0.0.1", 0);
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(first.port());
  auto *any = reinterpret_cast<sockaddr *>(&address);
  EXPECT_EQ(connect(fd, any, sizeof(address)), -1);
  EXPECT_EQ(errno, ECONNREFUSED);
  close(fd);
  // Two servers that load at once both bind: one is refused when the other
  // listens.
  Listener second("127.0.0.1", first.port());
  int socket = first.listen();
  EXPECT_THROW(second.listen(), std::runtime_error);
  EXPECT_THROW(Listener("127.0.0.1", first.port()), std::runtime_error);
  close(socket);
}

} // namespace
