// The calendar of a forecast.
(() => {
  const { byId, data, narrow, element, styled, many, name, pair, button, details, noDetails, reveal } = page;
  // On a phone a row has two lines for its name.
  const rowHeight = () => (narrow.matches ? 40 : 26);
  const OVERSCAN = 4;
  const HINT = "Select a shoot, a version, or a reason why shoots are stuck.";
  const texts = data.texts;
  const DAY = 86400000;
  const begin = Date.parse(`${data.from}T00:00:00Z`);
  const date = (day) => new Date(begin + day * DAY).toISOString().slice(0, 10);
  const today = Math.floor((Date.now() - begin) / DAY);
  const place = (day) => `${(Math.max(0, Math.min(data.days, day)) / data.days) * 100}%`;
  // What a row is called: the part that differs most comes first on a phone.
  const label = (whole, first, second) =>
    (narrow.matches && second ? [name(first), element("span", { class: "second" }, name(second))] : [whole]);
  const range = ([fewest, most]) => (fewest === most ? `${fewest}` : `${fewest} to ${most}`);

  // ---- the data, by name ----

  const CAUSES = ["automatic", "forced: expired", "forced: not in the CloudProfile, or not for this pool"];
  const node = ([pool, fewest, most, inPlace, surge, unavailable]) => ({ pool: texts[pool], count: [fewest, most], inPlace, surge: texts[surge], unavailable: texts[unavailable] });
  const move = ([pool, image, from, to, cause, nodes, same]) => ({
    what: pool === null ? "control plane" : `${texts[pool]}: ${image === null ? "Kubernetes" : texts[image]}`,
    version: `${image === null ? "Kubernetes" : texts[image]}@`, from: texts[from], to: texts[to], cause, nodes: nodes.map(node), same,
  });
  const step = ([day, latest, isNew, moves, operations]) => ({ day, latest, isNew, moves: moves.map(move), operations: operations.map((one) => texts[one]) });
  const standstill = ([day, group, what]) => ({ day, group, what: texts[what] });
  const shoots = data.shoots.map(([title, profile, window, steps, stuck, before, findings]) => ({
    name: texts[title], profile: texts[profile], window: texts[window], steps: steps.map(step), stuck: stuck.map(standstill),
    before: before && { steps: before[0].map(step), stuck: before[1].map(standstill) }, findings: findings.map((one) => texts[one]),
  }));
  const versions = data.versions.map(([profile, what, version, stages]) => ({
    profile: texts[profile], what: texts[what], version: texts[version], name: `${texts[what]} ${texts[version]}`,
    stages: stages.map(([day, stage]) => ({ day: day === null ? -Infinity : day, stage: texts[stage] })),
  }));
  const groups = data.stuck.map(([day, what, why, remedy], number) => ({
    day, what: texts[what], why: texts[why], remedy: texts[remedy],
    shoots: shoots.filter((shoot) => shoot.stuck.some((one) => one.group === number)),
  }));
  const nodesOf = (one) => one.moves.flatMap((moved) => moved.nodes);
  const sum = (nodes) => nodes.reduce(([fewest, most], pool) => [fewest + pool.count[0], most + pool.count[1]], [0, 0]);
  // With a change of the profile only what is new counts, as in the line above.
  const counted = (shoot) => shoot.steps.filter((one) => one.isNew);

  // ---- filters ----

  const { values: filters, set } = page.filters(["text", "profile", "day"], ["moving", "forced", "stuck"], () => layout());
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
  // What the details are about: a list, and the key of one of its rows.
  let selected;
  const list = (id, draw, show, key) => {
    const box = byId(id);
    const space = box.firstElementChild;
    const made = { rows: [], active: 0, chosen: false };
    made.draw = () => {
      space.style.height = `${made.rows.length * rowHeight()}px`;
      const from = Math.max(0, Math.floor(box.scrollTop / rowHeight()) - OVERSCAN);
      const to = Math.min(made.rows.length, Math.ceil((box.scrollTop + box.clientHeight) / rowHeight()) + OVERSCAN);
      const drawn = [];
      for (let row = from; row < to; row += 1) {
        const { label, title, spoken, marks } = draw(made.rows[row]);
        const line = element("div", { class: "row", role: "option", id: `${id}-${row}`, "aria-label": spoken, "aria-posinset": row + 1, "aria-setsize": made.rows.length, "aria-selected": made.chosen && row === made.active },
          element("span", { class: "name", title }, ...label), element("div", { class: "lane" }, ...marks, ...todayLine()));
        styled(line, { top: `${row * rowHeight()}px`, height: `${rowHeight()}px` });
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
      const top = made.active * rowHeight();
      box.scrollTop = Math.max(Math.min(box.scrollTop, top), top + rowHeight() - box.clientHeight);
      Object.values(lists).forEach((other) => other.draw());
      show(made.rows[made.active]);
      selected = { list: id, key: key(made.rows[made.active]) };
      writeAddress();
    };
    made.find = (wanted) => made.rows.findIndex((row) => key(row) === wanted);
    made.set = (rows) => {
      const before = made.chosen ? made.rows[made.active] : undefined;
      made.rows = rows;
      made.active = Math.max(0, rows.indexOf(before));
      made.chosen = before !== undefined && rows.includes(before);
      if (before && !made.chosen) {
        selected = undefined;
        noDetails(HINT);
        writeAddress();
      }
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
      if (!row) return;
      made.choose(Number(row.id.split("-")[1]));
      reveal(box);
    });
    box.addEventListener("keydown", (event) => {
      const screen = Math.max(1, Math.floor(box.clientHeight / rowHeight()) - 1);
      const steps = { ArrowUp: -1, ArrowDown: 1, PageUp: -screen, PageDown: screen, Home: -Infinity, End: Infinity, Enter: 0, " ": 0 };
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
  // Words only where they have room.
  const LETTER = 8;
  const lane = () => byId("days").clientWidth;
  const drawVersion = (version) => {
    const shown = stages(version);
    const marks = shown.map((one) => {
      const hasRoom = (lane() * (one.to - one.from)) / data.days > LETTER * (one.stage.length + 1);
      return styled(element("span", { class: `stage ${one.stage}`, title: stageText(one) }, hasRoom ? one.stage : ""), { left: place(one.from), width: `calc(${place(one.to)} - ${place(one.from)})` });
    });
    return { label: label(name(version.name), version.version, version.what), title: version.name, spoken: `${version.name}, ${version.profile}: ${shown.map(stageText).join(", ")}`, marks };
  };
  const todayLine = () => (today >= 0 && today < data.days ? [styled(element("span", { class: "today" }), { left: place(today) })] : []);
  const stuckSince = (one) => (one.day > 0 ? `stuck from ${date(one.day)} on` : `stuck since ${date(one.day)}`);
  const moveText = (moved) => `${moved.what} ${moved.from} to ${moved.to}, ${CAUSES[moved.cause]}`;
  const dayText = (one) => (one.day === one.latest ? date(one.day) : `${date(one.day)} or ${date(one.latest)}`);
  // At the right end a mark would be outside.
  const end = (day, title) => styled(element("span", { class: "end", title }), { left: `min(${place(day)}, 100% - .9rem)` });
  const drawGroup = (group) => {
    const title = `${many(group.shoots.length, "shoot", "shoots")}: ${group.what}`;
    return { label: label(name(title), many(group.shoots.length, "shoot", "shoots"), group.what), title, spoken: `${title}, ${stuckSince(group)}: ${group.why}`, marks: [end(group.day, stuckSince(group))] };
  };
  const drawShoot = (shoot) => {
    const spoken = [`${shoot.name}: ${shoot.steps.length ? many(shoot.steps.length, "day with moves", "days with moves") : "nothing changes"}`,
      ...shoot.stuck.map(stuckSince)].join(", ");
    const ends = shoot.stuck.map((one) => end(one.day, `${stuckSince(one)}: ${one.what}`));
    const moves = shoot.steps.map((one) => {
      const force = one.moves.some((moved) => moved.cause) ? " byForce" : "";
      const quiet = nodesOf(one).length ? "" : " quietly";
      return styled(element("span", { class: `move${force}${quiet}`, title: `${dayText(one)}: ${one.moves.map(moveText).join("; ")}` }), { left: `clamp(.5rem, ${place(one.day + 0.5)}, 100% - .5rem)` });
    });
    const [project, ...rest] = shoot.name.split("/");
    const own = rest.join("/");
    return { label: label(pair(`${project}/`, own), own, project), title: shoot.name, spoken, marks: [...ends, ...moves] };
  };

  // ---- details ----

  const nodeText = (pool) => `${pool.pool}: ${range(pool.count)} ${pool.inPlace ? "updated in place" : `replaced, surge ${pool.surge}, unavailable ${pool.unavailable}`}`;
  const stepsOf = ({ steps, stuck }) => [
    !steps.length && !stuck.length && element("p", {}, "Nothing changes."),
    ...steps.map((one) => element("div", {}, element("h3", {}, dayText(one)),
      element("ul", {}, ...one.moves.map((moved) => element("li", {}, moveText(moved),
        element("div", { class: "small quiet" }, [...moved.nodes.map(nodeText), ...(moved.same ? ["the same nodes"] : [])].join("; ") || "no node is touched"))),
      ...one.operations.map((text) => element("li", {}, text))))),
    ...stuck.map((one) => element("div", {}, element("h3", {}, stuckSince(one).replace("stuck", "Stuck")),
      element("p", {}, `${one.what ? `${one.what}: ` : ""}${groups[one.group].why}.`), element("p", {}, groups[one.group].remedy))),
  ];
  const showShoot = (shoot) => details(shoot.name,
    element("p", { class: "quiet" }, `CloudProfile ${shoot.profile}, ${shoot.window}`),
    ...(shoot.before ? [element("h3", {}, "With the change")] : []),
    ...stepsOf(shoot),
    ...(shoot.before ? [element("h3", {}, "Before the change"), ...stepsOf(shoot.before)] : []),
    ...shoot.findings.map((text) => element("p", { class: "quiet" }, text)));
  const NAMED = 200;
  const nameList = (found) => [
    element("ul", {}, ...found.slice(0, NAMED).map((shoot) => element("li", {}, button(shoot.name, () => open("shoots", shoot.name))))),
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
      element("h3", {}, `${many(coming.length, "shoot moves", "shoots move")} to it`), ...nameList(coming));
  };
  const showGroup = (group) => details(`${many(group.shoots.length, "shoot is", "shoots are")} stuck${group.what ? ` at ${group.what}` : ""}`,
    element("p", {}, `${stuckSince(group).replace("stuck", "Stuck")}: ${group.why}.`), element("p", {}, group.remedy), ...nameList(group.shoots));

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
  // The highest count of the axis, and the counts that have a line: 1, 2 or 5 times a power of ten apart.
  const axis = (most) => {
    const power = 10 ** Math.floor(Math.log10(most));
    const distance = [0.5, 1, 2, 5].map((factor) => Math.max(1, factor * power)).find((one) => most / one <= 4);
    const count = Math.ceil(most / distance);
    return [count * distance, [...Array(count + 1).keys()].map((number) => number * distance)];
  };
  const drawDays = (days) => {
    const [highest, ticks] = axis(Math.max(1, ...[...days.values()].map((count) => count[1])));
    const height = (count) => `${(count / highest) * 100}%`;
    byId("counts").replaceChildren(...ticks.map((count) => styled(element("span", { class: "count" }, `${count}`), { bottom: height(count) })));
    const lines = ticks.map((count) => styled(element("span", { class: "tick" }), { bottom: height(count) }));
    byId("days").replaceChildren(...lines, ...todayLine(), ...[...days].map(([day, count]) => {
      const bar = element("div", { class: `bar${filters.day === String(day) ? " chosen" : ""}`, title: `${date(day)}: ${range(count)} nodes` });
      bar.addEventListener("click", () => {
        set("day", filters.day === String(day) ? "" : String(day));
        layout();
      });
      return styled(bar, { left: place(day), width: `${100 / data.days}%`, height: `max(3px, ${height(count[1])})` });
    }));
    const [top] = [...days].sort((one, other) => other[1][1] - one[1][1] || one[0] - other[0]);
    byId("most").textContent = `Nodes replaced or updated per day, ${top ? `most on ${date(top[0])}: ${range(top[1])}` : "none on any day"}`;
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
    // As many as have room for their names, and none that the right end would cut.
    const room = 62;
    const width = byId("months").clientWidth;
    const every = [1, 2, 3, 4, 6, 12, 24, 60, 120].find((count) => (shown.length / count) * room <= width) || 120;
    const fits = ([day], index) => index % every === 0 && ((data.days - day) / data.days) * width >= room;
    const named = shown.filter(fits).map(([day, time]) => styled(element("span", { class: "month" }, time.toISOString().slice(0, 7)), { left: place(day) }));
    byId("months").replaceChildren(...named, ...todayLine().map((line) => {
      line.textContent = "today";
      return styled(line, { left: `min(${place(today)}, 100% - 3rem)` });
    }));
  };

  // ---- what a person does ----

  const versionKey = (version) => `${version.profile} ${version.what}@${version.version}`;
  const versionList = list("versions", drawVersion, showVersion, versionKey);
  const shootList = list("shoots", drawShoot, showShoot, (shoot) => shoot.name);
  const groupList = list("groups", drawGroup, showGroup, (group) => `${group.what}: ${group.why}`);
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
    const visible = new Set(shown);
    const stuck = groups.filter((group) => group.shoots.some((shoot) => visible.has(shoot)));
    byId("groupsBox").hidden = stuck.length === 0;
    versionList.set(listed);
    shootList.set(shown);
    groupList.set(stuck);
    // A phone scrolls the page; elsewhere the list has what is left of the window.
    const box = byId("shoots");
    box.style.height = narrow.matches ? `${Math.min(innerHeight / 2, shown.length * rowHeight() + 2)}px` : "";
    byId("versions").style.height = `${listed.length * rowHeight() + 2}px`;
    byId("groups").style.height = `${stuck.length * rowHeight() + 2}px`;
    document.documentElement.style.setProperty("--gutter", `${box.offsetWidth - box.clientWidth}px`);
    months();
    Object.values(lists).forEach((one) => one.draw());
    writeAddress();
  };

  // ---- the address: what is selected, and the filters ----

  const writeAddress = () => {
    const address = new URLSearchParams();
    if (selected) address.set(selected.list, selected.key);
    for (const [id, value] of Object.entries(filters)) {
      if (value) address.set(id, id === "day" ? date(Number(value)) : value === true ? "yes" : value);
    }
    history.replaceState(null, "", address.size ? `#${address}` : location.pathname);
  };
  const open = (id, key) => {
    const row = lists[id].find(key);
    if (row < 0) return false;
    lists[id].choose(row);
    reveal(byId(id));
    return true;
  };
  const openAddress = () => {
    const address = new URLSearchParams(location.hash.slice(1));
    for (const id of ["text", "profile"]) set(id, address.get(id) || "");
    for (const id of ["moving", "forced", "stuck"]) set(id, address.has(id) && address.get(id) === "yes");
    set("day", "");
    layout();
    const day = (Date.parse(`${address.get("day")}T00:00:00Z`) - begin) / DAY;
    if ([...byId("day").options].some((option) => option.value === String(day))) {
      set("day", String(day));
      layout();
    }
    const [id] = Object.keys(lists).filter((list) => address.has(list));
    if (id && !open(id, address.get(id))) byId("status").textContent = "This page has nothing with the name in its address.";
  };

  addEventListener("resize", layout);
  addEventListener("hashchange", openAddress);

  const profiles = [...new Set([...versions, ...shoots].map((one) => one.profile))].sort();
  byId("profile").append(...profiles.map((name) => element("option", { value: name }, name)));
  byId("profileBox").hidden = profiles.length < 2;
  byId("summary").textContent = `${date(0)} to ${date(data.days)}: ${data.summary}.${data.leftOut ? ` ${data.leftOut}` : ""}`;
  page.errors(data.errors);
  const stuckCount = shoots.filter((shoot) => shoot.stuck.length).length;
  byId("stuckBox").classList.toggle("alert", stuckCount > 0);
  byId("stuckLabel").textContent = `Only stuck (${stuckCount})`;
  byId("groupsTitle").textContent = `Stuck: ${many(stuckCount, "shoot", "shoots")}`;
  noDetails(HINT);
  openAddress();
})();
