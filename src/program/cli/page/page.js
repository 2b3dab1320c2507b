"use strict";
// What all pages share. A page decides nothing: the program made every decision, and the data contains it.
// All text is set as text, never as markup, because names come from objects that others write.
const page = (() => {
  const byId = (id) => document.getElementById(id);
  const data = JSON.parse(byId("data").textContent);
  // The same limit as in the stylesheet.
  const narrow = matchMedia("(max-width: 40rem)");

  const element = (tag, attributes, ...children) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value !== undefined) made.setAttribute(name, value);
    }
    made.append(...children.filter((child) => child !== undefined && child !== ""));
    return made;
  };
  // Styles are set one by one, because the policy of the page forbids them in attributes.
  const styled = (made, styles) => {
    for (const [name, value] of Object.entries(styles)) made.style.setProperty(name, value);
    return made;
  };
  const many = (count, one, several) => `${count} ${count === 1 ? one : several}`;

  // A name in one line. If it does not fit, its middle is left out, because names often differ at the end.
  const ENDING = 9;
  const SHORT = 12;
  const name = (text) => {
    const letters = [...text];
    if (letters.length <= SHORT) return element("span", { class: "text" }, text);
    const middle = letters.length - Math.min(ENDING, Math.floor(letters.length / 2));
    return element("span", { class: "text" },
      element("span", { class: "beginning" }, letters.slice(0, middle).join("")),
      element("span", { class: "ending" }, letters.slice(middle).join("")));
  };
  // Two names in one line: without room, the first is shortened before the second.
  const pair = (first, second) =>
    element("span", { class: "text" }, element("span", { class: "first" }, first), name(second));
  const button = (text, act) => {
    const made = element("button", { type: "button" }, text);
    made.addEventListener("click", act);
    return made;
  };

  // ---- details ----

  const details = (title, ...content) => {
    byId("detailsTitle").textContent = title;
    byId("detailsBody").replaceChildren(...content.filter(Boolean));
    byId("details").scrollTop = 0;
    byId("details").classList.remove("empty");
  };
  const noDetails = (hint) => {
    details("Nothing selected", element("p", {}, hint));
    byId("details").classList.add("empty");
  };
  // On a phone the details are below the list.
  let origin;
  const reveal = (from) => {
    if (!narrow.matches) return;
    origin = from;
    byId("details").scrollIntoView({ block: "start" });
  };
  byId("back").addEventListener("click", () => (origin || byId("main")).scrollIntoView({ block: "center" }));

  // ---- filters: fields with text, boxes to tick ----

  const filters = (fields, boxes, changed) => {
    const values = {};
    const read = () => {
      for (const id of fields) values[id] = byId(id).value.trim();
      for (const id of boxes) values[id] = byId(id).checked;
    };
    const change = () => {
      read();
      changed();
    };
    for (const id of fields) {
      for (const event of ["input", "change"]) {
        byId(id).addEventListener(event, () => {
          if (values[id] !== byId(id).value.trim()) change();
        });
      }
    }
    for (const id of boxes) byId(id).addEventListener("change", change);
    byId("filters").addEventListener("submit", (event) => event.preventDefault());
    byId("filters").addEventListener("reset", () => requestAnimationFrame(change));
    const set = (id, value) => {
      byId(id)[boxes.includes(id) ? "checked" : "value"] = value;
      values[id] = value;
    };
    read();
    return { values, set };
  };

  // ---- problems with the input ----

  const errors = (texts) => {
    if (!texts.length) return;
    byId("errors").hidden = false;
    byId("errors").querySelector("summary").textContent = many(texts.length, "problem with the input", "problems with the input");
    byId("errors").querySelector("ul").append(...texts.map((text) => element("li", {}, text)));
  };

  return { byId, data, narrow, element, styled, many, name, pair, button, details, noDetails, reveal, filters, errors };
})();
