#pragma once

#define PLUGRAD_API __attribute__((visibility("default")))
