/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef FLOWSTAMP_LAWS_H
#define FLOWSTAMP_LAWS_H
#endif
