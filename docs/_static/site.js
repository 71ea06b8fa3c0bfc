// SPDX-License-Identifier: Apache-2.0 OR MIT
// The gallery's filters. Without this script the page shows all figures and no menu.
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const form = document.querySelector("form.filters");
  if (!form) return;
  const { law, verdict } = form.elements;
  const asked = new URLSearchParams(location.search);
  law.value = asked.get("law") ?? "";
  verdict.value = asked.get("verdict") ?? "";
  const cards = [...document.querySelectorAll(".card")];

  function apply() {
    for (const card of cards) {
      const { laws, verdict: found } = card.dataset;
      const shown = (!law.value || laws.split(" ").includes(law.value)) && (!verdict.value || found === verdict.value);
      card.hidden = !shown;
    }
    for (const section of document.querySelectorAll("section:has(> .gallery)")) {
      section.hidden = !section.querySelector(".card:not([hidden])");
    }
    form.querySelector("output").value = `${cards.filter((card) => !card.hidden).length} figures`;
  }

  form.hidden = false;
  form.addEventListener("change", () => {
    const query = new URLSearchParams([...new FormData(form)].filter(([, value]) => value)).toString();
    history.replaceState(null, "", query ? `?${query}` : location.pathname);
    apply();
  });
  apply();
});
