// SPDX-License-Identifier: Apache-2.0 OR MIT
// Ranks results of the search: reference first, figures and history last. The other numbers are Sphinx's own.
"use strict";

var Scorer = {
  score: ([page, , , , score]) => {
    if (page.startsWith("reference/")) return score + 20;
    if (/^(gallery|results|notes)\/|^(changelog|contributing|architecture)$/.test(page)) return score - 20;
    return score;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
