#include <tools/train/loss_plot.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <string_view>

namespace plugrad::training {
namespace {

// The picture's size, and the frame of the axes in it.
constexpr double kWidth = 880, kHeight = 480, kLeft = 70, kRight = 810, kTop = 84, kBottom = 416;
constexpr const char* kLossColour = "#2563a8";
constexpr const char* kAccuracyColour = "#c2571a";

// Unlike printf, independent of the locale: SVG has only the decimal point.
std::string number(double value, std::chars_format format = std::chars_format::fixed, int precision = 1) {
  char text[400];
  const auto end = std::to_chars(text, text + sizeof text, value, format, precision).ptr;
  return std::string(text, end);
}

void append_piece(std::string& out, std::string_view text) { out += text; }
void append_piece(std::string& out, double value) { out += number(value); }
template <class... Pieces> void append(std::string& out, const Pieces&... pieces) { (append_piece(out, pieces), ...); }

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;  // XML 1.0 allows no control characters
    }
  }
  return out;
}

// A step of 1, 2 or 5 times a power of ten. It divides the range into about `wanted` parts.
double tick_step(double range, int wanted) {
  const double raw = range / wanted;
  const double power = std::pow(10, std::floor(std::log10(raw)));
  const double factor = raw / power;
  return power * (factor <= 1 ? 1 : factor <= 2 ? 2 : factor <= 5 ? 5 : 10);
}

struct Axes {
  double last_step, top_loss;
  double x(double step) const { return kLeft + (kRight - kLeft) * step / last_step; }
  double loss(double value) const { return kBottom - (kBottom - kTop) * std::clamp(value / top_loss, -1.0, 2.0); }
  double accuracy(double value) const { return kBottom - (kBottom - kTop) * std::clamp(value, 0.0, 1.0); }
};

std::vector<PlotPoint> finite(const std::vector<PlotPoint>& points) {
  std::vector<PlotPoint> kept;
  std::ranges::copy_if(points, std::back_inserter(kept), [](const PlotPoint& point) { return std::isfinite(point.value); });
  return kept;
}

// Replaces groups of neighbours by their means: a picture of this width cannot show more than kPoints.
std::vector<PlotPoint> thinned(const std::vector<PlotPoint>& points) {
  constexpr size_t kPoints = 1200;
  const size_t group = (points.size() + kPoints - 1) / kPoints;
  if (group <= 1) return points;
  std::vector<PlotPoint> kept;
  for (size_t i = 0; i < points.size(); i += group) {
    const size_t count = std::min(group, points.size() - i);
    double sum = 0;
    for (size_t k = i; k < i + count; ++k) sum += points[k].value;
    kept.push_back({points[i + count - 1].step, sum / static_cast<double>(count)});
  }
  return kept;
}

// The mean over a window around each point, about a fiftieth of the run: a centred window does not lag behind.
std::vector<PlotPoint> smoothed(std::vector<PlotPoint> points) {
  const size_t half = points.size() / 100;
  std::vector<double> sums = {0};
  for (const PlotPoint& point : points) sums.push_back(sums.back() + point.value);
  for (size_t i = 0; i < points.size(); ++i) {
    // Equally long on both sides: at the steep start a longer right side would pull the curve down.
    const size_t left = std::min(half, i), right = std::min(left, points.size() - 1 - i);
    points[i].value = (sums[i + right + 1] - sums[i - left]) / static_cast<double>(left + right + 1);
  }
  return points;
}

// The axis ends above 99 % of the losses, because the first losses are far larger than the rest.
double top_of(const std::vector<PlotPoint>& loss) {
  if (loss.empty()) return 1;
  std::vector<double> values;
  for (const PlotPoint& point : loss) values.push_back(point.value);
  const auto nearly_all = values.begin() + static_cast<ptrdiff_t>((values.size() - 1) * 99 / 100);
  std::ranges::nth_element(values, nearly_all);
  const double top = std::max(*nearly_all, 1e-12) * 1.1;
  const double step = tick_step(top, 5);
  return step * std::ceil(top / step);
}

template <class Height>
void append_line(std::string& out, const std::vector<PlotPoint>& points, const Axes& axes, Height height,
                 std::string_view style) {
  if (points.empty()) return;
  append(out, "<polyline fill=\"none\" stroke-linejoin=\"round\" ", style, " points=\"");
  for (const PlotPoint& point : points) append(out, axes.x(static_cast<double>(point.step)), ",", height(point.value), " ");
  out += "\"/>\n";
}

struct Place {
  double x, y;
  std::string_view anchor;
};

void append_text(std::string& out, Place place, std::string_view text, std::string_view more = "") {
  append(out, "<text x=\"", place.x, "\" y=\"", place.y, "\" text-anchor=\"", place.anchor, "\" ", more, ">", escaped(text),
         "</text>\n");
}

void append_rule(std::string& out, double x1, double y1, double x2, double y2, std::string_view colour) {
  append(out, "<line x1=\"", x1, "\" y1=\"", y1, "\" x2=\"", x2, "\" y2=\"", y2, "\" stroke=\"", colour, "\"/>\n");
}

void append_grid(std::string& out, const Axes& axes, bool with_accuracy) {
  const double step = tick_step(axes.top_loss, 5);
  for (double value = 0; value <= axes.top_loss * (1 + 1e-9); value += step) {
    append_rule(out, kLeft, axes.loss(value), kRight, axes.loss(value), "#e3e6ea");
    append_text(out, {kLeft - 10, axes.loss(value) + 4, "end"}, number(value, std::chars_format::general, 6));
  }
  for (int percent = 0; with_accuracy && percent <= 100; percent += 20) {
    const double y = axes.accuracy(percent / 100.0);
    append_rule(out, kRight, y, kRight + 5, y, kAccuracyColour);
    append_text(out, {kRight + 10, y + 4, "start"}, std::to_string(percent) + "%");
  }
  const double across = std::max(1.0, tick_step(axes.last_step, 8));
  for (double at = 0; at <= axes.last_step; at += across) {
    append_rule(out, axes.x(at), kBottom, axes.x(at), kBottom + 5, "#8a929c");
    append_text(out, {axes.x(at), kBottom + 20, "middle"}, std::to_string(static_cast<int64_t>(at)));
  }
  append(out, "<path d=\"M", kLeft, " ", kTop, "V", kBottom, "H", kRight, "\" fill=\"none\" stroke=\"#8a929c\"/>\n");
}

std::string bold(std::string_view colour) { return "font-weight=\"600\" fill=\"" + std::string(colour) + "\""; }

void append_labels(std::string& out, const LossPlot& plot) {
  append_text(out, {kLeft, 34, "start"}, plot.title, "font-size=\"19\" font-weight=\"600\" fill=\"#1c232b\"");
  append_text(out, {kLeft, 56, "start"}, plot.subtitle, "fill=\"#5b6570\"");
  append_text(out, {(kLeft + kRight) / 2, kHeight - 18, "middle"}, "step");
  append_text(out, {kLeft, kTop - 10, "middle"}, "loss", bold(kLossColour));
  if (!plot.accuracy.empty()) append_text(out, {kRight, kTop - 10, "middle"}, "accuracy", bold(kAccuracyColour));
}

void append_loss(std::string& out, const std::vector<PlotPoint>& points, const Axes& axes) {
  const std::string colour = "stroke=\"" + std::string(kLossColour) + "\" ";
  const auto height = [&](double value) { return axes.loss(value); };
  append(out, "<clipPath id=\"frame\"><rect x=\"", kLeft, "\" y=\"", kTop, "\" width=\"", kRight - kLeft, "\" height=\"",
         kBottom - kTop, "\"/></clipPath>\n<g clip-path=\"url(#frame)\">\n");
  append_line(out, points, axes, height, colour + "stroke-opacity=\"0.3\" stroke-width=\"1\"");
  append_line(out, smoothed(points), axes, height, colour + "stroke-width=\"2.2\"");
  out += "</g>\n";
}

void append_accuracy(std::string& out, const std::vector<PlotPoint>& points, const Axes& axes) {
  if (points.empty()) return;
  const auto height = [&](double value) { return axes.accuracy(value); };
  append_line(out, thinned(points), axes, height, "stroke-width=\"1.6\" stroke=\"" + std::string(kAccuracyColour) + "\"");
  constexpr size_t kMostMarks = 60;
  if (points.size() <= kMostMarks) {
    for (const PlotPoint& point : points) {
      append(out, "<circle cx=\"", axes.x(static_cast<double>(point.step)), "\" cy=\"", height(point.value),
             "\" r=\"3\" fill=\"", kAccuracyColour, "\"/>\n");
    }
  }
  const double y = height(points.back().value);
  append_text(out, {kRight - 8, y < kTop + 30 ? y + 22 : y - 12, "end"}, number(100 * points.back().value) + "%",
              bold(kAccuracyColour) + " paint-order=\"stroke\" stroke=\"white\" stroke-width=\"3\"");
}

}  // namespace

std::string loss_plot_svg(const LossPlot& plot) {
  const std::vector<PlotPoint> loss = finite(plot.loss), accuracy = finite(plot.accuracy);
  int64_t last_step = 1;
  for (const auto* points : {&loss, &accuracy}) {
    if (!points->empty()) last_step = std::max(last_step, points->back().step);
  }
  const Axes axes{static_cast<double>(last_step), top_of(loss)};
  std::string out;
  append(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ", kWidth, " ", kHeight, "\" width=\"", kWidth,
         "\" height=\"", kHeight, "\" font-family=\"system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif\" font-size=\"13\" ",
         "fill=\"#3b444e\">\n<title>", escaped(plot.title),
         "</title>\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n");
  append_grid(out, axes, !accuracy.empty());
  append_labels(out, plot);
  append_loss(out, thinned(loss), axes);
  append_accuracy(out, accuracy, axes);
  return out + "</svg>\n";
}

}  // namespace plugrad::training
