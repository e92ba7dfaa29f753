// All of the core.
#pragma once
#include <plugrad/autograd/autograd.hpp>
#include <plugrad/nn/module.hpp>
#include <plugrad/nn/optimizer.hpp>
#include <plugrad/nn/value.hpp>
#include <plugrad/ops/elementwise.hpp>
#include <plugrad/ops/factories.hpp>
#include <plugrad/ops/indexing.hpp>
#include <plugrad/ops/matmul.hpp>
#include <plugrad/ops/reduce.hpp>
#include <plugrad/ops/update.hpp>
#include <plugrad/ops/views.hpp>
#include <plugrad/runtime/generator.hpp>
#include <plugrad/runtime/log.hpp>
#include <plugrad/runtime/policy.hpp>
#include <plugrad/runtime/runtime.hpp>
#include <plugrad/tensor/tensor.hpp>
