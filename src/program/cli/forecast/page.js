"use strict";
// The page decides nothing: every move was forecast by the program and stands in the data.
// All text is set as text, never as markup: names come from objects that others write.
(() => {
  const byId = (id) => document.getElementById(id);
  const data = JSON.parse(byId("data").textContent);
  const ROW = 26;
  const OVERSCAN = 4;
  const texts = data.texts;
  const DAY = 86400000;
  const begin = Date.parse(`${data.from}T00:00:00Z`);
  const date = (day) => new Date(begin + day * DAY).toISOString().slice(0, 10);
  // A phone has room for what tells lines apart.
  const narrow = matchMedia("(max-width: 40rem)");
  const place = (day) => `${(Math.max(0, Math.min(data.days, day)) / data.days) * 100}%`;

  const element = (tag, attributes, ...children) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value !== undefined) made.setAttribute(name, value);
    }
    made.append(...children.filter((child) => child !== undefined && child !== ""));
    return made;
  };
  // Styles are set one by one: the policy of the page forbids them in attributes.
  const styled = (made, styles) => {
    for (const [name, value] of Object.entries(styles)) made.style.setProperty(name, value);
    return made;
  };
  const many = (count, one, several) => `${count} ${count === 1 ? one : several}`;
  const range = ([fewest, most]) => (fewest === most ? `${fewest}` : `${fewest} to ${most}`);

  // ---- the data, by name ----

  const CAUSES = ["automatic", "forced: expired", "forced: not in the CloudProfile, or not for this pool"];
  const node = ([pool, fewest, most, inPlace, surge, unavailable]) => ({ pool: texts[pool], count: [fewest, most], inPlace, surge: texts[surge], unavailable: texts[unavailable] });
  const move = ([pool, image, from, to, cause, nodes, same]) => ({
    what: pool === null ? "control plane" : `${texts[pool]}: ${image === null ? "Kubernetes" : texts[image]}`,
    version: `${image === null ? "Kubernetes" : texts[image]}@`, from: texts[from], to: texts[to], cause, nodes: nodes.map(node), same,
  });
  const step = ([day, latest, isNew, moves, operations]) => ({ day, latest, isNew, moves: moves.map(move), operations: operations.map((one) => texts[one]) });
  const standstill = ([day, what, why, remedy]) => ({ day, what: texts[what], why: texts[why], remedy: texts[remedy] });
  const shoots = data.shoots.map(([name, profile, window, steps, stuck, before, findings]) => ({
    name: texts[name], profile: texts[profile], window: texts[window], steps: steps.map(step), stuck: stuck.map(standstill),
    before: before && { steps: before[0].map(step), stuck: before[1].map(standstill) }, findings: findings.map((one) => texts[one]),
  }));
  const versions = data.versions.map(([profile, what, version, stages]) => ({
    profile: texts[profile], what: texts[what], version: texts[version], name: `${texts[what]} ${texts[version]}`,
    stages: stages.map(([day, stage]) => ({ day: day === null ? -Infinity : day, stage: texts[stage] })),
  }));
  const nodesOf = (one) => one.moves.flatMap((moved) => moved.nodes);
  const sum = (nodes) => nodes.reduce(([fewest, most], pool) => [fewest + pool.count[0], most + pool.count[1]], [0, 0]);
  // With a change of the profile only what is new counts, as in the line above.
  const counted = (shoot) => shoot.steps.filter((one) => one.isNew);

  // ---- filters ----

  const filters = { text: "", profile: "", day: "", moving: false, forced: false, stuck: false };
  const names = (shoot) => shoot.steps.flatMap((one) => one.moves.flatMap((moved) => [moved.version + moved.from, moved.version + moved.to]));
  const matches = (shoot) => {
    const text = filters.text.toLowerCase().replace(" ", "@");
    return (!filters.profile || shoot.profile === filters.profile) &&
      (!filters.moving || shoot.steps.length > 0) &&
      (!filters.stuck || shoot.stuck.length > 0) &&
      (!filters.forced || shoot.steps.some((one) => one.moves.some((moved) => moved.cause))) &&
      (!filters.day || counted(shoot).some((one) => one.day === Number(filters.day) && nodesOf(one).length)) &&
      (!text || shoot.name.toLowerCase().includes(text) || names(shoot).some((name) => name.toLowerCase().includes(text)));
  };

  // ---- lists of which only what can be seen is drawn ----

  const lists = {};
  const list = (id, draw, show) => {
    const box = byId(id);
    const space = box.firstElementChild;
    const made = { rows: [], active: 0, chosen: false };
    made.draw = () => {
      space.style.height = `${made.rows.length * ROW}px`;
      const from = Math.max(0, Math.floor(box.scrollTop / ROW) - OVERSCAN);
      const to = Math.min(made.rows.length, Math.ceil((box.scrollTop + box.clientHeight) / ROW) + OVERSCAN);
      const drawn = [];
      for (let row = from; row < to; row += 1) {
        const [name, title, spoken, ...content] = draw(made.rows[row]);
        const line = element("div", { class: "row", role: "option", id: `${id}-${row}`, "aria-label": spoken, "aria-posinset": row + 1, "aria-setsize": made.rows.length, "aria-selected": made.chosen && row === made.active },
          element("span", { class: "name", title }, name), element("div", { class: "lane" }, ...content));
        styled(line, { top: `${row * ROW}px`, height: `${ROW}px` });
        if (made.chosen && row === made.active) line.classList.add("active");
        drawn.push(line);
      }
      space.replaceChildren(...drawn);
      if (made.chosen && byId(`${id}-${made.active}`)) box.setAttribute("aria-activedescendant", `${id}-${made.active}`);
      else box.removeAttribute("aria-activedescendant");
    };
    made.choose = (row) => {
      if (!made.rows.length) return;
      made.active = Math.max(0, Math.min(made.rows.length - 1, row));
      Object.values(lists).forEach((other) => { other.chosen = other === made; });
      const top = made.active * ROW;
      box.scrollTop = Math.max(Math.min(box.scrollTop, top), top + ROW - box.clientHeight);
      Object.values(lists).forEach((other) => other.draw());
      show(made.rows[made.active]);
    };
    made.set = (rows) => {
      const before = made.chosen ? made.rows[made.active] : undefined;
      made.rows = rows;
      made.active = Math.max(0, rows.indexOf(before));
      made.chosen = before !== undefined && rows.includes(before);
      if (before && !made.chosen) showHelp();
      made.draw();
    };
    let framed = false;
    box.addEventListener("scroll", () => {
      if (framed) return;
      framed = true;
      requestAnimationFrame(() => { framed = false; made.draw(); });
    }, { passive: true });
    box.addEventListener("click", (event) => {
      const row = event.target.closest(".row");
      if (row) made.choose(Number(row.id.split("-")[1]));
    });
    box.addEventListener("keydown", (event) => {
      const page = Math.max(1, Math.floor(box.clientHeight / ROW) - 1);
      const steps = { ArrowUp: -1, ArrowDown: 1, PageUp: -page, PageDown: page, Home: -Infinity, End: Infinity, Enter: 0, " ": 0 };
      if (!(event.key in steps)) return;
      made.choose(made.chosen ? made.active + steps[event.key] : steps[event.key] === Infinity ? Infinity : 0);
      event.preventDefault();
    });
    lists[id] = made;
    return made;
  };

  const stages = (version) => {
    const found = [];
    version.stages.forEach((one, index) => {
      const next = version.stages[index + 1];
      const [from, to] = [Math.max(0, one.day), next ? next.day : data.days];
      if (to > from && from < data.days) found.push({ ...one, from, to });
    });
    return found;
  };
  const stageText = (one) => `${one.stage}${one.day > 0 ? ` from ${date(one.day)}` : ""}`;
  const drawVersion = (version) => {
    const shown = stages(version);
    return [narrow.matches ? version.version : version.name, version.name, `${version.name}, ${version.profile}: ${shown.map(stageText).join(", ")}`, ...shown.map((one) =>
      styled(element("span", { class: `stage ${one.stage}`, title: stageText(one) }, one.to - one.from > data.days * 0.1 ? one.stage : ""), { left: place(one.from), width: `calc(${place(one.to)} - ${place(one.from)})` }))];
  };
  const stuckSince = (one) => (one.day > 0 ? `stuck from ${date(one.day)} on` : `stuck since ${date(one.day)}`);
  const moveText = (moved) => `${moved.what} ${moved.from} to ${moved.to}, ${CAUSES[moved.cause]}`;
  const dayText = (one) => (one.day === one.latest ? date(one.day) : `${date(one.day)} or ${date(one.latest)}`);
  const drawShoot = (shoot) => {
    const spoken = [`${shoot.name}: ${shoot.steps.length ? many(shoot.steps.length, "day with moves", "days with moves") : "nothing changes"}`,
      ...shoot.stuck.map(stuckSince)].join(", ");
    const ends = shoot.stuck.map((one) => styled(element("span", { class: "end", title: `${stuckSince(one)}: ${one.what}` }), { left: place(one.day) }));
    const moves = shoot.steps.map((one) => {
      const force = one.moves.some((moved) => moved.cause) ? " byForce" : "";
      const quiet = nodesOf(one).length ? "" : " quietly";
      return styled(element("span", { class: `move${force}${quiet}`, title: `${dayText(one)}: ${one.moves.map(moveText).join("; ")}` }), { left: `clamp(.5rem, ${place(one.day + 0.5)}, 100% - .5rem)` });
    });
    return [narrow.matches ? shoot.name.split("/").pop() : shoot.name, shoot.name, spoken, ...ends, ...moves];
  };

  // ---- details ----

  const details = (title, ...content) => {
    byId("detailsTitle").textContent = title;
    byId("detailsBody").replaceChildren(...content.filter(Boolean));
    byId("details").scrollTop = 0;
  };
  const nodeText = (pool) => `${pool.pool}: ${range(pool.count)} ${pool.inPlace ? "updated in place" : `replaced, surge ${pool.surge}, unavailable ${pool.unavailable}`}`;
  const stepsOf = ({ steps, stuck }) => [
    !steps.length && !stuck.length && element("p", {}, "Nothing changes."),
    ...steps.map((one) => element("div", {}, element("h3", {}, dayText(one)),
      element("ul", {}, ...one.moves.map((moved) => element("li", {}, moveText(moved),
        element("div", { class: "small quiet" }, [...moved.nodes.map(nodeText), ...(moved.same ? ["the same nodes"] : [])].join("; ") || "no node is touched"))),
      ...one.operations.map((text) => element("li", {}, text))))),
    ...stuck.map((one) => element("div", {}, element("h3", {}, stuckSince(one).replace("stuck", "Stuck")),
      element("p", {}, `${one.what ? `${one.what}: ` : ""}${one.why}.`), element("p", {}, one.remedy))),
  ];
  const showShoot = (shoot) => details(shoot.name,
    element("p", { class: "quiet" }, `CloudProfile ${shoot.profile}, ${shoot.window}`),
    ...(shoot.before ? [element("h3", {}, "With the change")] : []),
    ...stepsOf(shoot),
    ...(shoot.before ? [element("h3", {}, "Before the change"), ...stepsOf(shoot.before)] : []),
    ...shoot.findings.map((text) => element("p", { class: "quiet" }, text)));
  const NAMED = 200;
  const nameList = (found) => [
    element("ul", {}, ...found.slice(0, NAMED).map((shoot) => element("li", {}, shoot.name))),
    found.length > NAMED && element("p", {}, `and ${found.length - NAMED} more`),
  ];
  const showVersion = (version) => {
    const name = `${version.what}@${version.version}`;
    const of = (member) => shoots.filter((shoot) => shoot.profile === version.profile &&
      shoot.steps.some((one) => one.moves.some((moved) => moved.version + moved[member] === name)));
    const [leaving, coming] = [of("from"), of("to")];
    details(version.name,
      element("p", { class: "quiet" }, `CloudProfile ${version.profile}`),
      element("ul", {}, ...stages(version).map((one) => element("li", {}, stageText(one)))),
      element("h3", {}, `${many(leaving.length, "shoot leaves", "shoots leave")} it`), ...nameList(leaving),
      element("h3", {}, `${many(coming.length, "shoot comes", "shoots come")} to it`), ...nameList(coming));
  };
  const legend = (kind, text) => element("p", {}, element("span", { class: "key" }, element("span", { class: kind })), ` ${text}`);
  const showHelp = () => details("How to read it",
    element("p", {}, "Time goes from left to right. Each version is a line with the stages of its life, each shoot a line with the days on which maintenance moves it."),
    legend("move", "an automatic update"), legend("move byForce", "an update by force: the version has expired, or is not there"),
    legend("move quietly", "hollow: no node is replaced or updated"),
    legend("end", "stuck: a version that can't stay has nowhere to go"),
    element("p", {}, "The bars above are the nodes that are replaced or updated on a day, at most as many as the autoscaler may have."));

  // ---- days ----

  const perDay = (shown) => {
    const days = new Map();
    for (const shoot of shown) {
      for (const one of counted(shoot)) {
        const [fewest, most] = sum(nodesOf(one));
        if (!nodesOf(one).length) continue;
        const before = days.get(one.day) || [0, 0];
        days.set(one.day, [before[0] + fewest, before[1] + most]);
      }
    }
    return new Map([...days].sort(([one], [other]) => one - other));
  };
  const drawDays = (days) => {
    const most = Math.max(1, ...[...days.values()].map((count) => count[1]));
    byId("days").replaceChildren(...[...days].map(([day, count]) => {
      const bar = element("div", { class: `bar${filters.day === String(day) ? " chosen" : ""}`, title: `${date(day)}: ${range(count)} nodes` });
      bar.addEventListener("click", () => set("day", filters.day === String(day) ? "" : String(day)));
      return styled(bar, { left: place(day), width: `${100 / data.days}%`, height: `${Math.max(4, (count[1] / most) * 100)}%` });
    }));
    const [top] = [...days].sort((one, other) => other[1][1] - one[1][1] || one[0] - other[0]);
    byId("most").textContent = top ? `most on ${date(top[0])}: ${range(top[1])}` : "no node is touched";
  };
  const months = () => {
    const shown = [];
    const first = new Date(begin);
    for (let month = 0; ; month += 1) {
      const time = month ? Date.UTC(first.getUTCFullYear(), first.getUTCMonth() + month, 1) : begin;
      const day = (time - begin) / DAY;
      if (day >= data.days) break;
      shown.push([day, new Date(time)]);
    }
    // As many as have room for their names.
    const room = Math.max(1, Math.floor(byId("months").clientWidth / 58));
    const every = [1, 2, 3, 4, 6, 12, 24, 60, 120].find((count) => shown.length / count <= room) || 120;
    byId("months").replaceChildren(...shown.filter((_, index) => index % every === 0).map(([day, time]) =>
      styled(element("span", { class: "month" }, time.toISOString().slice(0, 7)), { left: place(day) })));
  };

  // ---- what a person does ----

  const versionList = list("versions", drawVersion, showVersion);
  const shootList = list("shoots", drawShoot, showShoot);
  const layout = () => {
    const text = filters.text.toLowerCase();
    const shown = shoots.filter(matches);
    const touched = new Set(filters.text ? shown.flatMap(names) : []);
    const listed = versions.filter((version) => (!filters.profile || version.profile === filters.profile) &&
      (!text || version.name.toLowerCase().includes(text) || touched.has(`${version.what}@${version.version}`)));
    const filtered = filters.day;
    filters.day = "";
    const days = perDay(filtered ? shoots.filter(matches) : shown);
    filters.day = filtered;
    drawDays(days);
    byId("day").replaceChildren(element("option", { value: "" }, "all"), ...[...days].map(([day, count]) =>
      element("option", { value: day }, `${date(day)}: ${range(count)} nodes`)));
    byId("day").value = filters.day;
    byId("status").textContent = `${many(shown.length, "shoot", "shoots")} of ${shoots.length}, ${many(listed.length, "version", "versions")} of ${versions.length}`;
    versionList.set(listed);
    shootList.set(shown);
    // A phone scrolls the page; elsewhere the list has what is left of the window.
    const box = byId("shoots");
    box.style.height = narrow.matches ? `${Math.min(innerHeight / 2, shown.length * ROW + 2)}px` : "";
    byId("versions").style.height = `${listed.length * ROW + 2}px`;
    versionList.draw();
    shootList.draw();
    document.documentElement.style.setProperty("--gutter", `${box.offsetWidth - box.clientWidth}px`);
    months();
  };
  const set = (id, value) => {
    filters[id] = value;
    if (byId(id).type === "checkbox") byId(id).checked = value;
    else byId(id).value = value;
    layout();
  };
  for (const id of ["text", "profile", "day"]) {
    for (const event of ["input", "change"]) byId(id).addEventListener(event, () => { if (filters[id] !== byId(id).value.trim()) set(id, byId(id).value.trim()); });
  }
  for (const id of ["moving", "forced", "stuck"]) byId(id).addEventListener("change", () => set(id, byId(id).checked));
  byId("filters").addEventListener("submit", (event) => event.preventDefault());
  byId("filters").addEventListener("reset", () => {
    Object.assign(filters, { text: "", profile: "", day: "", moving: false, forced: false, stuck: false });
    requestAnimationFrame(layout);
  });
  addEventListener("resize", layout);

  const profiles = [...new Set([...versions, ...shoots].map((one) => one.profile))].sort();
  byId("profile").append(...profiles.map((name) => element("option", { value: name }, name)));
  byId("profileBox").hidden = profiles.length < 2;
  byId("summary").textContent = `${date(0)} to ${date(data.days)}: ${data.summary}.${data.leftOut ? ` ${data.leftOut}` : ""}`;
  if (data.errors.length) {
    byId("errors").hidden = false;
    byId("errors").querySelector("summary").textContent = many(data.errors.length, "problem with the input", "problems with the input");
    byId("errors").querySelector("ul").append(...data.errors.map((error) => element("li", {}, error)));
  }
  showHelp();
  layout();
})();
