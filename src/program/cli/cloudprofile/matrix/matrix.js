// The matrix of a CloudProfile.
(() => {
  const { byId, data, narrow, element, many, name, button, details, noDetails, reveal } = page;
  const grid = byId("grid");
  const space = byId("space");
  const ROW = 44;
  // A head has this many machine types, one in each line, and their capabilities.
  const NAMED_TYPES = 3;
  const headHeight = Math.max(ROW, 12 + 19 * (1 + Math.max(1, ...data.groups.map((group) =>
    Math.min(NAMED_TYPES + 1, group.machineTypes.length)))));
  // On a phone two columns of types are seen beside the versions.
  const firstWidth = () => (narrow.matches ? 112 : 230);
  const columnWidth = () => (narrow.matches ? 126 : 220);
  const OVERSCAN = 3;
  const HINT = "Select a cell, a version, or the head of a column.";
  const ACTIVE = ["preview", "supported", "deprecated"];

  // ---- the data, indexed ----

  const types = data.groups.flatMap((group, number) => group.machineTypes.map((type) => ({ ...type, group: number })));
  // choices[image][group]: one entry for each part of the regions with another result.
  const choices = data.images.map((image) => {
    const byGroup = data.groups.map(() => []);
    for (const choice of image.choices) byGroup[choice.group].push(choice);
    return byGroup;
  });
  const classifications = [...new Set(data.images.map((image) => image.classification))];

  const typeCount = (count) => many(count, "machine type", "machine types");
  const capabilitiesText = (capabilities) =>
    data.capabilities.map((definition) => definition.name)
      .filter((name) => name in capabilities)
      .map((name) => `${name}={${capabilities[name].join(", ")}}`).join(" ");

  const valuesText = (capabilities) =>
    data.capabilities.filter((definition) => definition.name in capabilities)
      .map((definition) => capabilities[definition.name].join("+") || "none").join(" · ");

  // ---- what is shown ----

  for (const word of classifications) {
    const box = element("input", { type: "checkbox", id: `is-${word}`, checked: "" });
    byId("classifications").append(element("span", { class: word }, box, element("label", { for: box.id }, word || "unknown")));
  }
  const boxes = ["selectable", "problems", ...classifications.map((word) => `is-${word}`)];
  const { values: filters, set } = page.filters(["type", "image", "architecture", "region", "text"], boxes, () => layout());
  let rows = [];
  let columns = [];
  let width = columnWidth();
  // The selected cell: its place, and the image and group that the details are about.
  let active = { row: 0, column: 0 };
  let subject;
  let framed = false;

  const namedType = () => types.find((type) => type.name === filters.type);
  const typesOf = (group) => {
    const exact = namedType();
    const wanted = filters.type.toLowerCase();
    return data.groups[group].machineTypes.filter((type) =>
      exact ? type.name === exact.name : type.name.toLowerCase().includes(wanted));
  };
  const parts = (image, group) => {
    const all = choices[image][group];
    return filters.region ? all.filter((choice) => !choice.regions || choice.regions.includes(filters.region)) : all;
  };
  const reference = (flavor, region) => (region && flavor.regions && flavor.regions[region]) || flavor.reference;
  const references = (flavor) => [flavor.reference, ...Object.values(flavor.regions || {})].filter(Boolean);
  const referenceText = (flavor, within) => {
    const wanted = within || data.regions;
    if (filters.region || !flavor.regions) {
      const found = reference(flavor, filters.region);
      return found ? `${found.member} ${found.value}` : "names no image";
    }
    const named = wanted.filter((region) => reference(flavor, region));
    if (!named.length) return "names no image";
    const first = reference(flavor, named[0]);
    const more = named.length - 1;
    return `${first.member} ${first.value} (${named[0]}${more ? ` and ${many(more, "more region", "more regions")}` : ""})`;
  };
  // Gardener admits Shoots with it, and their machines are not created. Expired versions don't count.
  const isProblem = (image, choice) =>
    choice.admitted && choice.outcome !== "chosen" && data.images[image].classification !== "expired";
  const hasProblem = (image, group) => parts(image, group).some((choice) => isProblem(image, choice));
  const isSelectable = (image, group) =>
    ACTIVE.includes(data.images[image].classification) &&
    data.groups[group].machineTypes.some((type) => type.usable) &&
    parts(image, group).some((choice) => choice.outcome === "chosen" && choice.admitted);

  const reasonOf = (image, choice) => {
    if (choice.outcome === "unusable") {
      const chosen = verdictsOf(choice).find((one) => one.verdict.is === "chosen").flavor;
      const why = { noImage: "it names no image", noArchitecture: "it does not name its architecture" };
      return `flavor ${chosen} is chosen, but ${why[data.images[image].flavors[chosen].defect]}`;
    }
    if (choice.outcome === "noFlavors") return choice.regions ? "no image in this region" : "the provider config lists no image";
    if (choice.outcome === "tied") {
      const tied = verdictsOf(choice).filter((one) => one.verdict.is === "tied").map((one) => one.flavor);
      return `flavors ${tied.join(" and ")} list the same capabilities`;
    }
    const rejected = verdictsOf(choice).map((one) => one.verdict.mismatches || []);
    const nearest = rejected.reduce((best, one) => (best === undefined || one.length < best.length ? one : best), undefined);
    return nearest ? nearest.map(mismatchText).join("; ") : "no flavor fits";
  };
  const mismatchText = (mismatch) =>
    `${mismatch.capability}: machine {${mismatch.wanted.join(", ")}}, image {${mismatch.offered.join(", ")}}`;
  const verdictsOf = (choice) =>
    choice.candidates.map((flavor, position) => ({ flavor, verdict: data.decisions[choice.decision].verdicts[position] }));
  // What sets a flavor apart: the values that it names itself.
  const flavorText = (choice, flavor) => {
    const { architecture, ...others } = flavor.capabilities;
    return `flavor ${choice.flavor}: ${valuesText(others) || "any machine"}`;
  };
  // The part of a reference that tells the images of a row apart. Paths of clouds begin alike, and many end with the version.
  const shortReference = (value, version) => {
    const [, path] = /(?:^|.*\/)images\/(.+)$/i.exec(value) || [];
    const short = (path || value).replace(/\/versions\//i, "/");
    const end = short.length - version.length - 1;
    return end > 0 && short.endsWith(version) && "/:@-".includes(short[end]) ? short.slice(0, end) : short;
  };
  const imagesOf = (flavor, version, within) => {
    const wanted = (within || data.regions).filter((region) => !filters.region || region === filters.region);
    const found = flavor.regions ? wanted.map((region) => reference(flavor, region)) : [flavor.reference];
    return [...new Set(found.filter(Boolean).map((one) => shortReference(one.value, version)))];
  };

  // The face of a cell: its words, its colour, and what a screen reader says.
  const face = (image, group) => {
    const version = data.images[image];
    const found = parts(image, group);
    const first = found[0];
    if (!first) return { kind: "nothing", head: "–", tail: "", spoken: "not evaluated" };
    if (found.some((choice) => choice.outcome !== first.outcome || choice.flavor !== first.flavor)) {
      const kind = found.some((choice) => isProblem(image, choice)) ? "tied" : version.classification;
      return { kind, head: "differs by region", tail: found.map((choice) => choice.outcome === "chosen" ? imagesOf(version.flavors[choice.flavor], version.version, choice.regions)[0] || "names no image" : outcomeText(choice)).join(", "), spoken: "differs by region" };
    }
    if (first.outcome !== "chosen") {
      const head = outcomeText(first);
      return { kind: isProblem(image, first) ? "tied" : "nothing", head, tail: reasonOf(image, first), spoken: `${head}: ${reasonOf(image, first)}` };
    }
    const flavor = version.flavors[first.flavor];
    const images = imagesOf(flavor, version.version, first.regions);
    const head = columns.length === 1 ? referenceText(flavor, first.regions) : images[0] || "names no image";
    const tail = `${flavorText(first, flavor)}${images.length > 1 ? `, ${images.length} images by region` : ""}`;
    const spoken = `flavor ${first.flavor}, ${referenceText(flavor, first.regions)}`;
    if (!first.admitted) return { kind: "refused", head, tail: `not admitted, ${tail}`, spoken: `${spoken}, but Gardener refuses it` };
    return { kind: version.classification, head, tail, spoken };
  };
  const outcomeText = (choice) => ({ unusable: "unusable flavor", tied: "tie", noneFits: "no flavor fits", noFlavors: "no image" })[choice.outcome] || "";

  const layout = () => {
    columns = data.groups.map((_, group) => group).filter((group) =>
      typesOf(group).length > 0 &&
      (!filters.architecture || (data.groups[group].capabilities.architecture || []).includes(filters.architecture)));
    const text = filters.text.toLowerCase();
    rows = data.images.map((_, image) => image).filter((image) => {
      const version = data.images[image];
      return (!filters.image || version.name === filters.image) &&
        filters[`is-${version.classification}`] &&
        (!text || version.version.toLowerCase().includes(text) ||
          version.flavors.some((flavor) => references(flavor).some((one) => one.value.toLowerCase().includes(text)))) &&
        (!filters.selectable || columns.some((group) => isSelectable(image, group))) &&
        (!filters.problems || columns.some((group) => hasProblem(image, group)));
    });
    if (filters.problems) columns = columns.filter((group) => rows.some((image) => hasProblem(image, group)));
    // Expired versions come last.
    const place = (image) => (data.images[image].classification === "expired" ? 1 : 0);
    rows.sort((one, other) => place(one) - place(other) || one - other);
    const room = Math.floor((grid.clientWidth - firstWidth()) / Math.max(1, columns.length));
    width = Math.max(columnWidth(), room);
    space.style.width = `${firstWidth() + columns.length * width}px`;
    const height = headHeight + rows.length * ROW;
    space.style.height = `${height}px`;
    // A phone has no room for what is empty. Elsewhere a scroll bar may need some.
    grid.style.height = narrow.matches ? `${Math.min(innerHeight * 0.7, height + 2)}px` : "";
    const bar = firstWidth() + columns.length * width > grid.clientWidth ? 18 : 2;
    grid.style.maxHeight = narrow.matches ? "" : `${height + bar}px`;
    grid.setAttribute("aria-rowcount", rows.length + 1);
    grid.setAttribute("aria-colcount", columns.length + 1);
    followFilters();
    const shown = columns.reduce((sum, group) => sum + typesOf(group).length, 0);
    byId("status").textContent =
      `${many(rows.length, "image version", "image versions")} of ${data.images.length}, ${typeCount(shown)} of ${types.length} in ${many(columns.length, "column", "columns")}`;
    draw();
  };

  // ---- drawing: only what can be seen ----

  const place = (cell, row, number) => {
    cell.style.height = `${row ? ROW : headHeight}px`;
    cell.style.width = `${number ? width : firstWidth()}px`;
    if (number) cell.style.left = `${firstWidth() + (number - 1) * width}px`;
    cell.id = `cell-${row}-${number}`;
    cell.setAttribute("aria-colindex", number + 1);
    if (subject && row === active.row && number === active.column) cell.classList.add("active");
    return cell;
  };
  const lines = (head, tail) => [name(head), element("span", { class: "small" }, tail)];

  const headCell = (column) => {
    if (!column) return element("div", { class: "cell first", role: "columnheader" }, ...lines("Image version", "classification"));
    const group = columns[column - 1];
    const found = typesOf(group);
    const capabilities = data.groups[group].capabilities;
    const tail = capabilitiesText(capabilities);
    const all = found.map((type) => type.name);
    const shown = all.slice(0, all.length > NAMED_TYPES + 1 ? NAMED_TYPES : NAMED_TYPES + 1);
    const more = all.length - shown.length;
    const title = all.slice(0, 12).join(", ") + (all.length > 12 ? ", …" : "");
    return element("div", { class: "cell", role: "columnheader", title: `${title}\n${tail}`, "aria-label": `${title}, ${tail}` },
      ...shown.map(name), more ? element("span", {}, `and ${more} more`) : "",
      element("span", { class: "small quiet" }, valuesText(capabilities)));
  };
  const versionLines = (version) => {
    const expiry = version.expires ? `, ${version.classification === "expired" ? "since" : "until"} ${version.expires.slice(0, 10)}` : "";
    return narrow.matches
      ? lines(version.version, version.name)
      : lines(`${version.name} ${version.version}`, `${version.classification}${expiry}`);
  };
  const bodyCell = (row, column) => {
    const image = rows[row - 1];
    const version = data.images[image];
    if (!column) {
      return element("div", { class: `cell first ${version.classification}`, role: "rowheader", title: `${version.name} ${version.version}`, "aria-label": `${version.name} ${version.version}, ${version.classification}` },
        ...versionLines(version));
    }
    const shown = face(image, columns[column - 1]);
    return element("div", { class: `cell ${shown.kind}`, role: "gridcell", title: shown.spoken, "aria-label": `${shown.spoken}, ${version.classification}` }, ...lines(shown.head, shown.tail));
  };
  const rowElement = (row, from, to) => {
    const made = element("div", { class: row ? "row" : "row head", role: "row", "aria-rowindex": row + 1 });
    made.style.height = `${row ? ROW : headHeight}px`;
    if (row) made.style.top = `${headHeight + (row - 1) * ROW}px`;
    made.append(place(row ? bodyCell(row, 0) : headCell(0), row, 0));
    for (let column = from; column <= to; column += 1) {
      made.append(place(row ? bodyCell(row, column) : headCell(column), row, column));
    }
    return made;
  };

  const draw = () => {
    framed = false;
    const fromRow = Math.max(1, Math.floor(grid.scrollTop / ROW) + 1 - OVERSCAN);
    const toRow = Math.min(rows.length, Math.ceil((grid.scrollTop + grid.clientHeight) / ROW) + OVERSCAN);
    const fromColumn = Math.max(1, Math.floor(grid.scrollLeft / width) + 1 - OVERSCAN);
    const toColumn = Math.min(columns.length, Math.ceil((grid.scrollLeft + grid.clientWidth) / width) + OVERSCAN);
    const drawn = [rowElement(0, fromColumn, toColumn)];
    for (let row = fromRow; row <= toRow; row += 1) drawn.push(rowElement(row, fromColumn, toColumn));
    space.replaceChildren(...drawn);
    const current = `cell-${active.row}-${active.column}`;
    if (subject && byId(current)) grid.setAttribute("aria-activedescendant", current);
    else grid.removeAttribute("aria-activedescendant");
  };
  const drawSoon = () => {
    if (framed) return;
    framed = true;
    requestAnimationFrame(draw);
  };

  const move = (row, column) => {
    active = { row: Math.max(0, Math.min(rows.length, row)), column: Math.max(0, Math.min(columns.length, column)) };
    if (active.row) {
      const top = (active.row - 1) * ROW;
      grid.scrollTop = Math.max(Math.min(grid.scrollTop, top), top + headHeight + ROW - grid.clientHeight);
    }
    if (active.column) {
      const left = (active.column - 1) * width;
      grid.scrollLeft = Math.max(Math.min(grid.scrollLeft, left), left + firstWidth() + width - grid.clientWidth);
    }
    draw();
  };

  // ---- details ----

  const table = (heads, lists) =>
    element("table", {},
      element("thead", {}, element("tr", {}, ...heads.map((head) => element("th", { scope: "col" }, head)))),
      element("tbody", {}, ...lists.map((cells) => element("tr", {}, ...cells.map((cell) => element("td", {}, cell))))));
  const typeButtons = (found) => {
    const list = element("ul", {}, ...found.map((type) =>
      element("li", {}, button(type.name, () => choose("type", type.name)), type.usable ? "" : " (not usable)")));
    return found.length > 8 ? element("details", {}, element("summary", {}, typeCount(found.length)), list) : list;
  };
  const referenceList = (flavor, within) => {
    if (!flavor.regions) return element("p", {}, referenceText(flavor));
    const wanted = (within || data.regions).filter((region) => !filters.region || region === filters.region);
    const named = wanted.map((region) => [region, reference(flavor, region)]);
    return table(["region", "image"], named.map(([region, found]) => [region, found ? `${found.member} ${found.value}` : "none"]));
  };
  const verdictText = (verdict, ranking) => {
    switch (verdict.is) {
      case "chosen": return "chosen";
      case "tied": return "tied: another one lists the same capabilities";
      case "rejected": return `rejected: ${verdict.mismatches.map(mismatchText).join("; ")}`;
      case "outranked": {
        const step = ranking[verdict.step];
        return step ? `outranked: lacks ${step.capability}=${step.value}` : "outranked";
      }
      default: return verdict.is;
    }
  };

  const showChoice = (image, group) => {
    const version = data.images[image];
    const found = typesOf(group);
    const title = `${version.name} ${version.version} on ${found.length === 1 ? found[0].name : typeCount(found.length)}`;
    const blocks = parts(image, group).flatMap((choice) => {
      const flavor = version.flavors[choice.flavor];
      const ranking = data.decisions[choice.decision].ranking || [];
      const where = choice.regions && element("h3", {}, `In ${choice.regions.join(", ")}`);
      const result = flavor
        ? `Flavor ${choice.flavor} is chosen${choice.admitted ? "" : ", but Gardener refuses Shoots with it: core's half of the profile does not list a flavor that fits"}.`
        : `${outcomeText(choice)}: ${reasonOf(image, choice)}.${choice.admitted ? " Gardener admits Shoots with it, but their machines are not created." : ""}`;
      return [
        where,
        element("p", { class: "result" }, result),
        flavor && referenceList(flavor, choice.regions),
        choice.candidates.length > 0 && element("h3", {}, "Candidates"),
        choice.candidates.length > 0 && table(["flavor", "verdict", "runs on"], verdictsOf(choice).map((one) =>
          [String(one.flavor), verdictText(one.verdict, ranking), capabilitiesText(version.flavors[one.flavor].capabilities) || "every machine"])),
        ranking.length > 0 && element("h3", {}, "How it was decided"),
        ranking.length > 0 && element("ol", {}, ...ranking.map((step) =>
          element("li", {}, `${step.capability}=${step.value} keeps ${step.kept.map((kept) => `flavor ${choice.candidates[kept]}`).join(", ")}`))),
      ];
    });
    const expiry = version.expires ? `, ${version.classification === "expired" ? "expired on" : "expires on"} ${version.expires.slice(0, 10)}` : "";
    details(title,
      element("p", {}, element("span", { class: `badge ${version.classification}` }, version.classification), expiry),
      ...blocks,
      element("h3", {}, "Machine types"),
      element("p", { class: "quiet" }, capabilitiesText(data.groups[group].capabilities)),
      typeButtons(found));
  };
  const showVersion = (image) => {
    const version = data.images[image];
    const blocks = version.flavors.flatMap((flavor, number) => {
      const groups = data.groups.map((_, group) => group).filter((group) =>
        parts(image, group).some((choice) => choice.flavor === number));
      const found = groups.flatMap((group) => data.groups[group].machineTypes);
      return [
        element("h3", {}, `Flavor ${number}: ${found.length ? typeCount(found.length) : "no machine type gets it"}`),
        element("p", { class: "quiet" }, capabilitiesText(flavor.capabilities) || "every machine"),
        referenceList(flavor),
        found.length > 0 && typeButtons(found),
      ];
    });
    const without = data.groups.flatMap((group, number) =>
      parts(image, number).every((choice) => choice.outcome !== "chosen") ? group.machineTypes : []);
    details(`Who gets ${version.name} ${version.version}`,
      ...blocks,
      without.length > 0 && element("h3", {}, `Without an image: ${typeCount(without.length)}`),
      without.length > 0 && typeButtons(without));
  };
  const showGroup = (group) => {
    const found = typesOf(group);
    details(found.length === 1 ? found[0].name : typeCount(found.length),
      element("p", {}, capabilitiesText(data.groups[group].capabilities)), typeButtons(found));
  };
  const showSubject = () => {
    const { image, group } = subject;
    if (image !== undefined && group !== undefined) showChoice(image, group);
    else if (image !== undefined) showVersion(image);
    else showGroup(group);
  };
  // The selected cell stays selected wherever the filters move it.
  const followFilters = () => {
    if (!subject) {
      active = { row: Math.min(1, rows.length), column: Math.min(1, columns.length) };
      return;
    }
    const place = (wanted, shown) => (wanted === undefined ? 0 : shown.indexOf(wanted) + 1);
    const [row, column] = [place(subject.image, rows), place(subject.group, columns)];
    const isShown = (subject.image === undefined || row) && (subject.group === undefined || column);
    if (isShown) {
      active = { row, column };
      showSubject();
    } else {
      subject = undefined;
      followFilters();
      noDetails(HINT);
    }
  };
  // The address of a cell: image@version/type, each of which may be absent.
  const address = () => {
    const version = data.images[subject.image];
    const types = subject.group === undefined ? [] : typesOf(subject.group);
    return `#${[version ? `${version.name}@${version.version}` : "", types.length ? types[0].name : ""].map(encodeURIComponent).join("/")}`;
  };
  const show = () => {
    const image = rows[active.row - 1];
    const group = columns[active.column - 1];
    if (image === undefined && group === undefined) {
      subject = undefined;
      noDetails(HINT);
    } else {
      subject = { image, group };
      showSubject();
      byId("status").textContent = `Details: ${byId("detailsTitle").textContent}`;
      history.replaceState(null, "", address());
    }
    draw();
  };
  const openAddress = () => {
    const decoded = (part) => {
      try {
        return decodeURIComponent(part);
      } catch {
        return "";
      }
    };
    const [title, name] = location.hash.slice(1).split("/").map(decoded);
    if (!title && !name) return;
    const row = rows.findIndex((image) => `${data.images[image].name}@${data.images[image].version}` === title) + 1;
    const number = columns.findIndex((group) => typesOf(group).some((type) => type.name === name)) + 1;
    if (!row && !number) {
      byId("status").textContent = "This page has nothing with the name in its address.";
      return;
    }
    move(row, number);
    show();
    reveal(grid);
  };

  // ---- what a person does ----

  const choose = (id, value) => {
    set(id, value);
    layout();
  };
  const option = (value) => element("option", { value }, value);

  byId("types").append(...types.map((type) => element("option", { value: type.name })));
  byId("image").append(...[...new Set(data.images.map((image) => image.name))].map(option));
  byId("architecture").append(...[...new Set(data.groups.flatMap((group) => group.capabilities.architecture || []))].map(option));
  byId("region").append(...data.regions.map(option));
  byId("regionBox").hidden = data.regions.length === 0;
  const problems = data.images.reduce((sum, _, image) =>
    sum + data.groups.reduce((inner, group, number) => inner + (hasProblem(image, number) ? group.machineTypes.length : 0), 0), 0);
  byId("problemsBox").classList.toggle("tied", problems > 0);
  byId("problemsLabel").textContent = `Only problems: admitted, and no image (${problems})`;
  grid.addEventListener("scroll", drawSoon, { passive: true });
  grid.addEventListener("click", (event) => {
    const cell = event.target.closest(".cell");
    if (!cell) return;
    const [row, number] = cell.id.split("-").slice(1).map(Number);
    active = { row, column: number };
    show();
    if (subject) reveal(grid);
  });
  grid.addEventListener("keydown", (event) => {
    const screen = Math.max(1, Math.floor(grid.clientHeight / ROW) - 2);
    const steps = {
      ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], PageUp: [-screen, 0], PageDown: [screen, 0],
      Home: event.ctrlKey ? [-Infinity, -Infinity] : [0, -Infinity], End: event.ctrlKey ? [Infinity, Infinity] : [0, Infinity],
    };
    const step = steps[event.key];
    if (step) {
      move(active.row + step[0], active.column + step[1]);
      show();
    } else if (event.key === "Enter" || event.key === " ") show();
    else return;
    event.preventDefault();
  });
  addEventListener("resize", layout);

  addEventListener("hashchange", openAddress);

  // Paper has no scroll bars: everything that the filters leave, a few columns at a time, with its heading on each page.
  const ON_PAPER = 5;
  addEventListener("beforeprint", () => {
    const text = (cell) => [...cell.children].map((line) => line.textContent).join(" ");
    const pages = [];
    for (let from = 1; from <= columns.length; from += ON_PAPER) {
      const numbers = [...Array(columns.length + 1).keys()].slice(from, from + ON_PAPER);
      const heads = [headCell(0), ...numbers.map(headCell)].map((cell) => element("th", { scope: "col" }, text(cell)));
      const lines = rows.map((_, row) => element("tr", {}, ...[0, ...numbers].map((number) => {
        const cell = bodyCell(row + 1, number);
        return element("td", { class: cell.className.replace("cell", "").replace("first", "") }, text(cell));
      })));
      pages.push(element("table", {}, element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...lines)));
    }
    byId("paper").replaceChildren(...pages);
  });
  addEventListener("afterprint", () => byId("paper").replaceChildren());

  noDetails(HINT);
  const regions = data.regions.length ? `, ${many(data.regions.length, "region", "regions")}` : "";
  const form = data.declaresCapabilities ? "" : " (old format)";
  byId("summary").textContent =
    `${data.provider}${form}: ${typeCount(types.length)} in ${many(data.groups.length, "group", "groups")} with the same capabilities, ${many(data.images.length, "image version", "image versions")}${regions}.`;
  layout();
  openAddress();
})();
