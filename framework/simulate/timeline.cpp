#include "framework/simulate/timeline.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace altiplano {

namespace {

constexpr int kBlocksLane = 0, kWaitsLane = 1, kCollectivesLane = 2, kMessagesLane = 3;

std::string in_quotes(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

class TraceWriter {
 public:
  TraceWriter(const ProgramSimulation& simulation, const std::vector<std::string>& stage_names)
      : simulation_(simulation), stage_names_(stage_names) {
    for (const std::string& label : simulation.labels) labels_.push_back(in_quotes(label));
  }

  std::string text() {
    for (size_t p = 0; p < simulation_.ranks.size(); ++p) {
      add_names(p);
      const RankTimeline& rank = simulation_.ranks[p];
      for (const TimedAction& a : rank.actions)
        add(p, kBlocksLane, in_quotes(a.action.to_string()), std::string(1, letter_of(a.action.kind)), a.begin, a.end);
      for (const Wait& w : rank.waits) add(p, kWaitsLane, labels_[label_of(w.exchange)], "wait", w.begin, w.end);
    }
    for (const Exchange& e : simulation_.exchanges) add_exchange(e);
    return "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n" + events_ + "\n]}\n";
  }

 private:
  size_t label_of(int exchange) const {
    return static_cast<size_t>(simulation_.exchanges[static_cast<size_t>(exchange)].label);
  }

  void add_line(const std::string& event) {
    if (!events_.empty()) events_ += ",\n";
    events_ += event;
  }

  void add_names(size_t p) {
    add_line(fmt::format(R"({{"ph":"M","name":"process_name","pid":{},"args":{{"name":{}}}}})", p,
                         in_quotes(row_name(simulation_.ranks[p], stage_names_))));
    const char* const names[] = {"blocks", "waiting for", "collectives", "messages sent"};
    for (int lane = 0; lane < 4; ++lane)
      add_line(fmt::format(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":"{}"}}}})", p, lane,
                           names[lane]));
  }

  void add(size_t p, int lane, const std::string& name, const std::string& category, Seconds begin, Seconds end) {
    add_line(fmt::format(R"({{"ph":"X","name":{},"cat":"{}","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f}}})", name,
                         category, p, lane, 1e6 * begin.value, 1e6 * (end - begin).value));
  }

  void add_exchange(const Exchange& e) {
    const std::vector<int>& members = simulation_.groups[static_cast<size_t>(e.group)];
    const std::string& label = labels_[static_cast<size_t>(e.label)];
    if (e.is_message) return add(static_cast<size_t>(members[0]), kMessagesLane, label, "message", e.begin, e.end);
    for (int m : members) add(static_cast<size_t>(m), kCollectivesLane, label, "collective", e.begin, e.end);
  }

  const ProgramSimulation& simulation_;
  const std::vector<std::string>& stage_names_;
  std::vector<std::string> labels_;
  std::string events_;
};

std::string in_xml(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

constexpr const char* kWaitColour = "#eceff1";
constexpr const char* kExposedColour = "#f58518";

const char* colour_of(ActionKind kind) {
  switch (kind) {
    case ActionKind::kForward:
      return "#4c78a8";
    case ActionKind::kBackward:
      return "#3a8f6b";
    case ActionKind::kBackwardWeight:
      return "#8cc49f";
    case ActionKind::kRecompute:
      return "#9ecae9";
    case ActionKind::kUpdate:
      return "#7b5ea7";
    case ActionKind::kValidate:
    case ActionKind::kReduce:
      break;
  }
  return "#79706e";
}

class SvgWriter {
 public:
  SvgWriter(const ProgramSimulation& simulation, const std::vector<std::string>& stage_names, std::string title)
      : simulation_(simulation), stage_names_(stage_names), title_(std::move(title)) {
    const auto rows = static_cast<double>(std::max<size_t>(1, simulation.ranks.size()));
    row_ = std::clamp(900 / rows, 9.0, 34.0);
    scale_ = (kWidth - kLeft - kRight) / std::max(simulation.step.value, 1e-12);
    bottom_ = kTop + row_ * rows;
  }

  std::string text() {
    const double height = bottom_ + 72;
    out_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
        "height=\"{1:.0f}\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12\">\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
        "<text x=\"{2:.0f}\" y=\"26\" font-size=\"16\" font-weight=\"bold\">{3}</text>\n",
        kWidth, height, kMargin, in_xml(title_));
    add_scale();
    for (size_t p = 0; p < simulation_.ranks.size(); ++p) add_row(p);
    add_legend();
    return out_ + "</svg>\n";
  }

 private:
  static constexpr double kWidth = 1400, kMargin = 16, kLeft = 150, kRight = 24, kTop = 48;
  static constexpr double kLeastSeen = 0.3, kNarrow = 3, kGap = 0.6;  ///< pixels

  double x(Seconds time) const { return kLeft + time.value * scale_; }

  void add_rect(Seconds begin, Seconds end, double y, double height, const char* colour, const std::string& tip) {
    out_ += fmt::format(R"(<rect x="{:.2f}" y="{:.1f}" width="{:.2f}" height="{:.1f}" fill="{}")", x(begin), y,
                        std::max(kLeastSeen, x(end) - x(begin)), height, colour);
    out_ += tip.empty() ? "/>\n" : fmt::format("><title>{}</title></rect>\n", in_xml(tip));
  }

  void add_row(size_t p) {
    const RankTimeline& rank = simulation_.ranks[p];
    const double y = kTop + row_ * static_cast<double>(p), height = row_ - (row_ > 14 ? 5 : 1);
    const double text_y = y + height / 2 + 4;
    if (row_ >= 12 || p % 2 == 0)
      out_ += fmt::format("<text x=\"{:.0f}\" y=\"{:.1f}\" text-anchor=\"end\"{}>{}</text>\n", kLeft - 8, text_y,
                          row_ < 14 ? " font-size=\"9\"" : "", in_xml(row_name(rank, stage_names_)));
    add_rect(Seconds(0), simulation_.step, y, height, kWaitColour, "");
    const Seconds gap(kGap / scale_);
    for (const TimedAction& a : rank.actions)
      add_rect(a.begin, a.end - a.begin > gap * 5 ? a.end - gap : a.end, y, height, colour_of(a.action.kind),
               fmt::format("{}: {} from {}", a.action.to_string(), to_string(a.end - a.begin), to_string(a.begin)));
    for (const Wait& wait : rank.waits) add_wait(wait, y, height);
    for (const TimedAction& a : rank.actions) add_microbatch(a, y, height);
  }

  void add_wait(const Wait& wait, double y, double height) {
    const Exchange& e = simulation_.exchanges[static_cast<size_t>(wait.exchange)];
    const Seconds came = std::clamp(e.came, wait.begin, wait.end);
    const std::string& label = simulation_.labels[static_cast<size_t>(e.label)];
    if ((came - wait.begin).value * scale_ >= kLeastSeen)
      add_rect(wait.begin, came, y, height, kWaitColour, "waits for " + label);
    // Many short ones would hide what the rank works at.
    const double width = (wait.end - came).value * scale_, part = width < kNarrow ? height / 3 : height;
    if (width >= kLeastSeen)
      add_rect(came, wait.end, y + height - part, part, kExposedColour, label + ": " + to_string(wait.end - came));
  }

  void add_microbatch(const TimedAction& a, double y, double height) {
    const bool has_number = a.action.kind != ActionKind::kUpdate && a.action.kind != ActionKind::kReduce;
    const std::string text =
        has_number ? std::to_string(a.action.microbatch) : std::string(1, letter_of(a.action.kind));
    if (x(a.end) - x(a.begin) < 8.0 * static_cast<double>(text.size()) + 6 || height < 12) return;
    // At the end of the block, where it works: it may begin with waiting.
    out_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" fill=\"white\" text-anchor=\"end\">{}</text>\n", x(a.end) - 4,
                        y + height / 2 + 4, text);
  }

  void add_scale() {
    const double wanted = simulation_.step.value / 8;
    const double power = std::pow(10, std::floor(std::log10(std::max(wanted, 1e-12))));
    double tick = power;
    for (double factor : {2.0, 5.0, 10.0})
      if (tick < wanted) tick = factor * power;
    for (double t = 0; t <= simulation_.step.value; t += tick) {
      out_ += fmt::format(
          "<line x1=\"{0:.1f}\" y1=\"{1:.0f}\" x2=\"{0:.1f}\" y2=\"{2:.0f}\" stroke=\"#b0bec5\"/>\n"
          "<text x=\"{0:.1f}\" y=\"{3:.0f}\" text-anchor=\"middle\" fill=\"#546e7a\">{4}</text>\n",
          x(Seconds(t)), kTop - 6, bottom_ + 4, bottom_ + 18, t == 0 ? "0" : to_string(Seconds(t)));
    }
  }

  void add_legend() {
    double at = kLeft;
    const double y = bottom_ + 42;
    auto add = [&](const char* colour, const std::string& text) {
      out_ += fmt::format(
          "<rect x=\"{:.0f}\" y=\"{:.0f}\" width=\"14\" height=\"14\" fill=\"{}\"/>"
          "<text x=\"{:.0f}\" y=\"{:.0f}\">{}</text>\n",
          at, y, colour, at + 20, y + 11, in_xml(text));
      at += 44 + 6.6 * static_cast<double>(text.size());
    };
    add(colour_of(ActionKind::kForward), "forward (number: microbatch)");
    add(colour_of(ActionKind::kBackward), "backward");
    add(colour_of(ActionKind::kUpdate), "update");
    add(kExposedColour, "exposed communication");
    add(kWaitColour, "bubble: waits for others");
  }

  const ProgramSimulation& simulation_;
  const std::vector<std::string>& stage_names_;
  std::string title_;
  double row_, scale_, bottom_;
  std::string out_;
};

}  // namespace

std::string row_name(const RankTimeline& rank, const std::vector<std::string>& stage_names) {
  const std::string& stage = stage_names[rank.stage.index()];
  if (rank.num_alike == 1) return fmt::format("{}, rank {}", stage, rank.rank);
  return fmt::format("{}, rank {} of {}", stage, rank.rank, rank.num_alike);
}

std::string chrome_trace(const ProgramSimulation& simulation, const std::vector<std::string>& stage_names) {
  return TraceWriter(simulation, stage_names).text();
}

std::string timeline_svg(const ProgramSimulation& simulation, const std::vector<std::string>& stage_names,
                         const std::string& title) {
  return SvgWriter(simulation, stage_names, title).text();
}

}  // namespace altiplano
