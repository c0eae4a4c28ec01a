//===- DrawLayouts.h - layouts as pictures ----------------------*- C++ -*-===//
#ifndef GRETA_OPT_DRAWLAYOUTS_H
#define GRETA_OPT_DRAWLAYOUTS_H

/// Registers `greta-draw-layouts{directory=DIR}`.
void registerDrawLayouts();

#endif
