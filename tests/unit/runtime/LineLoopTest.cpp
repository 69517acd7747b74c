#include "tools/transept/LineLoop.h"

#include <gtest/gtest.h>

#include <csignal>
#include <fcntl.h>
#include <thread>
#include <unistd.h>

using namespace transept;
using namespace transept::tool;
using transept::search::Request;

namespace {

struct Pipe {
  int ends[2];
  Pipe() { EXPECT_EQ(pipe(ends), 0); }
  ~Pipe() {
    close(0);
    close(1);
  }
  void close(int end) {
    if (ends[end] >= 0)
      ::close(ends[end]);
    ends[end] = -1;
  }
  void fill(const std::string &bytes) {
    ASSERT_EQ(::write(ends[1], bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    close(1);
  }
  std::string drain() {
    close(1);
    std::string all;
    char block[4096];
    for (ssize_t got; (got = ::read(ends[0], block, sizeof block)) > 0;)
      all.append(block, static_cast<size_t>(got));
    return all;
  }
};

std::vector<std::string> linesOf(const std::string &bytes) {
  Pipe pipe;
  pipe.fill(bytes);
  LineReader reader(pipe.ends[0]);
  std::vector<std::string> lines;
  for (std::string line; reader.next(line);)
    lines.push_back(line);
  EXPECT_TRUE(reader.status().ok());
  EXPECT_EQ(reader.number(), static_cast<int64_t>(lines.size()));
  return lines;
}

using Strings = std::vector<std::string>;

TEST(LineReader, SplitsAtLineEnds) {
  EXPECT_EQ(linesOf(""), Strings{});
  EXPECT_EQ(linesOf("\n"), Strings{""});
  EXPECT_EQ(linesOf("a"), Strings{"a"});
  EXPECT_EQ(linesOf("a\n"), Strings{"a"});
  EXPECT_EQ(linesOf("a\r\n\r\nb\r"), (Strings{"a", "", "b"}));
  EXPECT_EQ(linesOf("\xEF\xBB\xBFx\n\xEF\xBB\xBFy"), (Strings{"x", "\xEF\xBB\xBFy"}));
  EXPECT_EQ(linesOf(std::string(50000, 'x') + "\n" + "z"), (Strings{std::string(50000, 'x'), "z"}));
  EXPECT_EQ(linesOf(std::string("a\0b\n", 4)), Strings{std::string("a\0b", 3)});
}

TEST(LineReader, SaysWhyReadingFails) {
  LineReader reader(open("/", O_RDONLY));
  std::string line;
  EXPECT_FALSE(reader.next(line));
  EXPECT_EQ(reader.status().code(), Code::FileError);
}

TEST(Lines, TextIsCheckedByteByByte) {
  for (const char *good :
       {"", "abc", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80", "\xED\x9F\xBF", "\xF4\x8F\xBF\xBF"})
    EXPECT_TRUE(checkText(good).ok()) << good;
  // Overlong forms, surrogates, beyond U+10FFFF, cut off, stray continuation.
  for (const char *bad :
       {"\xC0\xAF", "\xE0\x80\x80", "\xF0\x80\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xE2\x82", "\x80", "\xFF"})
    EXPECT_EQ(checkText(std::string("ab") + bad).message(), "malformed UTF-8 at byte 3");
  EXPECT_EQ(checkText(std::string("a\0b", 3)).message(), "a zero byte at byte 2");
  EXPECT_EQ(oneLine("a\nb\r\nc"), "a\\nb\\r\\nc");
}

/// Answers a line with itself in brackets; "bad" fails when read, "worse" when computed, "skip" is not computed.
struct Echo {
  std::vector<size_t> windows;
  LineSummary summary;
  bool oneByOne = false;

  std::string run(const std::string &input, bool keepGoing, int64_t window, Status &status) {
    Pipe in, out;
    in.fill(input);
    LineReader reader(in.ends[0]);
    LineWriter writer(out.ends[1]);
    status = loop(reader, writer, keepGoing, window);
    return out.drain();
  }
  Status loop(LineReader &reader, LineWriter &writer, bool keepGoing, int64_t window) {
    LineActions<Request> actions;
    actions.read = [](const std::string &line, Request &request, bool &done) -> Status {
      request.id = line;
      done = line == "skip";
      request.settings.stream = line == "stream";
      return line == "bad" ? Status(Code::InvalidInput, "is bad") : Status();
    };
    std::deque<Request *> waiting;
    actions.submit = [&](Request &request) { waiting.push_back(&request); };
    actions.step = [&, this](std::vector<Request *> &done) {
      windows.push_back(waiting.size());
      // The last one first, where there are several, and only one at a time where that is asked for.
      while (!waiting.empty() && (done.empty() || !oneByOne)) {
        Request *request = waiting.back();
        waiting.pop_back();
        if (request->id == "worse")
          request->status = {Code::LimitExceeded, "is worse"};
        done.push_back(request);
      }
      return Status();
    };
    actions.answer = [](int64_t index, const Request &request) {
      return std::to_string(index) + "[" + request.id.get<std::string>() + "]\n";
    };
    actions.failure = [](int64_t index, const Request &, const Status &status) {
      return std::to_string(index) + "!" + status.message() + "\n";
    };
    return lineLoop(reader, writer, actions, {window, keepGoing}, summary);
  }
};

TEST(LineLoop, AsManyLinesOutAsIn) {
  for (int64_t window : {1, 2, 100}) {
    Echo echo;
    Status status;
    EXPECT_EQ(echo.run("", false, window, status), "");
    EXPECT_TRUE(status.ok());
    EXPECT_EQ(echo.run("a\n\nskip\r\nb", false, window, status), "0[a]\n1[]\n2[skip]\n3[b]\n");
    EXPECT_TRUE(status.ok());
  }
}

TEST(LineLoop, StopsAtAnErrorAfterTheLinesBeforeIt) {
  for (int64_t window : {1, 2, 100}) {
    for (const char *word : {"bad", "worse"}) {
      Echo echo;
      Status status;
      EXPECT_EQ(echo.run("a\nb\n" + std::string(word) + "\nc\n", false, window, status), "0[a]\n1[b]\n");
      EXPECT_EQ(status.message(), "line 3: is " + std::string(word));
    }
    Echo echo;
    Status status;
    EXPECT_EQ(echo.run("a\nworse\nb\nbad\n", false, window, status), "0[a]\n");
    EXPECT_EQ(status.message(), "line 2: is worse");
    EXPECT_EQ(echo.run("a\n\xFF\n", false, window, status), "0[a]\n");
    EXPECT_EQ(status.message(), "line 2: malformed UTF-8 at byte 1");
  }
}

TEST(LineLoop, KeepsGoingAndFailsAtTheEnd) {
  for (int64_t window : {1, 2, 100}) {
    Echo echo;
    Status status;
    EXPECT_EQ(echo.run("a\nbad\nworse\nb\n\xFF\n", true, window, status),
              "0[a]\n1!is bad\n2!is worse\n3[b]\n4!malformed UTF-8 at byte 1\n");
    EXPECT_EQ(status.code(), Code::InvalidInput);
    EXPECT_EQ(status.message(), "3 of 5 lines failed; the first: line 2: is bad");
  }
}

TEST(LineLoop, AStreamingRequestIsAlone) {
  Echo echo;
  Status status;
  EXPECT_EQ(echo.run("a\nb\nstream\nc\nd\n", false, 100, status), "0[a]\n1[b]\n2[stream]\n3[c]\n4[d]\n");
  EXPECT_EQ(echo.windows, (std::vector<size_t>{2, 1, 2}));
}

TEST(LineLoop, KeepsTheOrderWhateverIsDoneFirst) {
  for (int64_t window : {1, 3, 100}) {
    Echo echo;
    echo.oneByOne = true;
    Status status;
    EXPECT_EQ(echo.run("a\nb\nskip\nworse\nc\nd\n", true, window, status),
              "0[a]\n1[b]\n2[skip]\n3!is worse\n4[c]\n5[d]\n");
    EXPECT_EQ(echo.summary.lines, 6);
    // A step for each line that is computed; the window is full again as soon as an answer has left.
    EXPECT_EQ(echo.windows.size(), 5u);
  }
  Echo echo;
  echo.oneByOne = true;
  Status status;
  EXPECT_EQ(echo.run("a\nb\nworse\nc\n", false, 100, status), "0[a]\n1[b]\n");
  EXPECT_EQ(status.message(), "line 3: is worse");
}

TEST(LineLoop, AnswersWhatIsThereWithoutWaitingForMore) {
  Pipe in, out;
  ASSERT_EQ(write(in.ends[1], "a\nb\nhal", 7), 7);
  std::thread thread([&] {
    Echo echo;
    LineReader reader(in.ends[0]);
    LineWriter writer(out.ends[1]);
    EXPECT_TRUE(echo.loop(reader, writer, false, 100).ok());
    out.close(1);
  });
  char answer[64] = {};
  ASSERT_EQ(read(out.ends[0], answer, sizeof answer), 10); // while the input is still open
  EXPECT_STREQ(answer, "0[a]\n1[b]\n");
  in.fill("f");
  thread.join();
  EXPECT_EQ(out.drain(), "2[half]\n");
}

TEST(LineLoop, AClosedPipeIsQuiet) {
  SignalGuard signals;
  Pipe in, out;
  in.fill("a\nb\n");
  out.close(0);
  Echo echo;
  LineReader reader(in.ends[0]);
  LineWriter writer(out.ends[1]);
  EXPECT_TRUE(echo.loop(reader, writer, false, 1).ok());
  EXPECT_TRUE(writer.closed());
}

TEST(LineLoop, AnInterruptionEndsBetweenLines) {
  SignalGuard signals;
  Pipe in, out;
  ASSERT_EQ(write(in.ends[1], "a\nb", 3), 3);
  Echo echo;
  LineReader reader(in.ends[0], &SignalGuard::interrupted());
  LineWriter writer(out.ends[1]);
  pthread_t self = pthread_self();
  std::thread thread([&] {
    char answer[16];
    EXPECT_EQ(read(out.ends[0], answer, sizeof answer), 5);
    usleep(20000); // until the loop waits for more input
    pthread_kill(self, SIGINT);
  });
  Status status = echo.loop(reader, writer, false, 1);
  thread.join();
  EXPECT_EQ(status.code(), Code::Cancelled);
  EXPECT_EQ(out.drain(), ""); // the half line is not answered
}

} // namespace
