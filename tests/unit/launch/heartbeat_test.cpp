#include "framework/launch/heartbeat.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <functional>
#include <thread>

#include "framework/base/text.hpp"

using namespace altiplano;
using namespace std::chrono_literals;

namespace {

std::unique_ptr<HeartbeatServer> listening() {
  auto server = HeartbeatServer::listen("s3cret", {});
  BOOST_REQUIRE_MESSAGE(server.is_ok(), server.status().to_string());
  return std::move(*server);
}

AgentRequest agent_of(const HeartbeatServer& server, const std::string& secret = "s3cret") {
  AgentRequest request;
  request.address = server.address();
  request.secret = secret;
  request.name = "n7";
  request.interval = 20ms;
  request.deadline = 60s;
  return request;
}

void wait_for(const std::function<bool()>& condition) {
  for (int i = 0; i < 6000 && !condition(); ++i) std::this_thread::sleep_for(10ms);
  BOOST_REQUIRE(condition());
}

/// A connection by hand.
class Stranger {
 public:
  explicit Stranger(const HeartbeatServer& server) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<uint16_t>(*parse_int(split(server.address(), ':').at(1))));
    BOOST_REQUIRE(connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
  }
  ~Stranger() { close(socket_); }
  void say(const std::string& text) const { (void)!::send(socket_, text.data(), text.size(), MSG_NOSIGNAL); }
  /// All that is answered until the connection is closed.
  std::string hear_to_the_end() const {
    std::string all;
    char chunk[256];
    for (ssize_t n = 0; (n = recv(socket_, chunk, sizeof(chunk), 0)) > 0;) all.append(chunk, static_cast<size_t>(n));
    return all;
  }

 private:
  int socket_;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(heartbeat)

BOOST_AUTO_TEST_CASE(an_agent_is_heard_again_and_again_until_the_server_says_goodbye) {
  auto server = listening();
  AgentEnd end = AgentEnd::kSilent;
  std::thread agent([&, request = agent_of(*server)] { end = send_heartbeats(request); });
  wait_for([&] { return server->last_heard().contains("n7"); });
  const auto first = server->last_heard().at("n7");
  wait_for([&] { return server->last_heard().at("n7") > first; });
  server.reset();
  agent.join();
  BOOST_TEST((end == AgentEnd::kGoodbye));
}

BOOST_AUTO_TEST_CASE(who_does_not_know_the_secret_is_refused_and_named_and_counts_for_no_host) {
  auto server = listening();
  BOOST_TEST((send_heartbeats(agent_of(*server, "guessed")) == AgentEnd::kRefused));
  for (const char* words : {"HELLO s3cre n7\n", "HELLO s3cret\n", "BEAT\n", "GET / HTTP/1.1\r\n\r\n"}) {
    const Stranger stranger(*server);
    stranger.say(words);
    BOOST_TEST(stranger.hear_to_the_end() == "NO\n", words);
  }
  const Stranger endless(*server);
  endless.say(std::string(5000, 'x'));
  (void)endless.hear_to_the_end();
  BOOST_TEST(server->last_heard().empty());
  const auto refusals = server->take_refusals();
  BOOST_TEST(refusals.size() == 6u);
  BOOST_TEST(refusals.front().ends_with(" was refused: it does not know the job's secret"), refusals.front());
  BOOST_TEST(refusals.back().ends_with(" was refused: it sent a line without end"), refusals.back());
}

BOOST_AUTO_TEST_CASE(a_supervisor_that_answers_no_more_is_silent_to_its_agents_and_one_that_is_gone_is_closed) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  BOOST_REQUIRE(bind(listener, reinterpret_cast<sockaddr*>(&address), length) == 0 && listen(listener, 1) == 0);
  getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length);
  AgentRequest request{fmt::format("127.0.0.1:{}", ntohs(address.sin_port)), "s3cret", "n7", 20ms, 200ms, {}, -1};
  BOOST_TEST((send_heartbeats(request) == AgentEnd::kSilent));
  close(listener);
  BOOST_TEST((send_heartbeats(request) == AgentEnd::kClosed));
}

BOOST_AUTO_TEST_SUITE_END()
