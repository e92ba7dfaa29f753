// A picture of a training run.
#pragma once
#include <plugrad/runtime/api.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace plugrad::io {

struct PlotPoint {
  int64_t step;
  double value;
};

struct LossPlot {
  std::string title, subtitle;      // any text; it is escaped
  std::vector<PlotPoint> loss;      // the left axis, from 0; in the order of their steps
  std::vector<PlotPoint> accuracy;  // the right axis, 0 .. 1, shown in percent; may be empty
};

// The picture as a file of SVG text, which stands alone. Values that are not finite are left out.
PLUGRAD_API std::string loss_plot_svg(const LossPlot& plot);

}  // namespace plugrad::io
